"""Templates against loops over pixels: maxima, where they are, and gradients."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Depthwise, Templates
from visionshare.errors import InputError
from visionshare.generators.layers.depthwise import DepthwiseLayer
from visionshare.generators.layers.depthwise.moving import MovingDepthwise
from visionshare.generators.layers.forward import Forward
from visionshare.generators.layers.templates import TemplateLayer
from visionshare.generators.layers.templates.layer import grid_cells
from visionshare.generators.layers.templates.moving import MovingTemplates
from visionshare.generators.layers.templates.tables import FEW

rng = np.random.default_rng(0)
BYTES = rng.integers(0, 256, (40, 13, 11, 2), np.uint8)
FLOATS = (BYTES / 255).astype(np.float32)


def random_layer(shape, n, size, pad=0, pool=1, grid=None, depthwise=False):
    """Return a layer of random templates and biases, in regular cells or in a grid.

    Cells of a negative pool are positions so far apart.
    """
    draw = np.random.default_rng(1)
    channels = 1 if depthwise else shape[2]
    templates = draw.normal(size=(n, size, size, channels)).astype(np.float32)
    biases = (draw.normal(size=n) / 2).astype(np.float32)
    cells = []
    for side in shape[:2]:
        positions = side + 2 * pad - size + 1
        regular = np.full(positions, -1)
        if pool < 0:
            regular[::-pool] = np.arange(-(positions // pool))
        else:
            used = positions // pool * pool
            regular[:used] = np.repeat(np.arange(positions // pool), pool)
        cells.append(grid_cells(positions, grid) if grid else regular)
    fields = (shape, templates, biases, (pad, pad), *cells)
    if depthwise:
        return DepthwiseLayer(*fields, draw.integers(shape[2], size=n))
    return TemplateLayer(*fields)


def maxima_by_loops(layer, images):
    """Return the maxima, and the first position of each; response by response, in float64."""
    x = images.astype(np.float64) / (255 if images.dtype == np.uint8 else 1)
    margins = [(pad, pad) for pad in layer.pads]
    x = np.pad(x, ((0, 0), *margins, (0, 0)))
    q = layer.templates.shape[1]
    out = np.zeros((len(x), *layer.out_shape))
    first = np.full((*out.shape, 2), -1)
    for i, y, c, t in np.ndindex(len(x), len(layer.row_cells), len(layer.col_cells), out.shape[3]):
        cell = layer.row_cells[y], layer.col_cells[c]
        if min(cell) < 0:
            continue
        patch = x[i, y : y + q, c : c + q]
        if isinstance(layer, DepthwiseLayer):
            patch = patch[..., layer.sources[t], None]
        response = np.sum(patch * layer.templates[t]) + layer.biases[t]
        place = (i, *cell, t)
        if response > out[place] + 1e-9:
            out[place] = response
            first[place] = y, c
    return out, first


CASES = [
    *((n, 2, pool, None, False) for n in (1, 4, 6, 9) for pool in (1, 2, 3)),
    *((n, size, pool, None, False) for n in (1, 6) for size in (3, 5) for pool in (1, 2, 3)),
    *((n, 3, 1, grid, False) for n in (1, 8, 17, 24, 33, 45, 55) for grid in (1, 2, 3)),
    *((n, size, 2, None, True) for n in (1, 5) for size in (2, 3)),
    (6, 3, 1, 2, True),
    *((n, 3, -stride, None, depthwise)
      for n in (5, 17) for stride in (2, 3) for depthwise in (False, True)),
]  # fmt: skip


@pytest.mark.parametrize(("n", "size", "pool", "grid", "depthwise"), CASES)
def test_outputs_are_the_largest_responses_of_cells(n, size, pool, grid, depthwise):
    images = (BYTES, FLOATS)[n % 2]
    layer = random_layer(images.shape[1:], n, size, (size + n) % 3, pool, grid, depthwise)
    forward = Forward([layer])
    maxima, places = forward.with_places(images, 1)
    expected, first = maxima_by_loops(layer, images[:2])
    assert_allclose(maxima[:2], expected, rtol=1e-5, atol=1e-5)
    # Where each maximum is.
    at = np.stack(layer.place_starts(np.maximum(places[:2], 0)), axis=-1)
    assert_array_equal(np.where(places[:2, ..., None] < 0, -1, at), first)
    assert_array_equal(forward.outputs(images, 1), maxima)
    # An image has the same bits alone, in any batch and on any number of threads.
    assert_array_equal(forward.outputs(images[5:6], 1), maxima[5:6])
    assert_array_equal(forward.outputs(np.concatenate([images] * 4), 2)[-40:], maxima)


@pytest.mark.parametrize("n", [3, 4, 8, 9, 27])
@pytest.mark.parametrize("pool", [2, 3, 4])
def test_few_templates_of_wide_images(n, pool):
    """Cells of a row lie side by side where templates are few."""
    images = rng.random((3, 10, 41 + n, 1 + n % 3), np.float32)
    layer = random_layer(images.shape[1:], n, 3, pool % 3, pool)
    expected, first = maxima_by_loops(layer, images[:1])
    maxima, places = Forward([layer]).with_places(images, 1)
    assert_allclose(maxima[:1], expected, rtol=1e-4, atol=1e-5)
    at = np.stack(layer.place_starts(np.maximum(places[:1], 0)), axis=-1)
    assert_array_equal(np.where(places[:1, ..., None] < 0, -1, at), first)


@pytest.mark.parametrize("n", [1, 4, 5, 8])
@pytest.mark.parametrize(
    ("shape", "size", "pad"),
    [((7, 28, 1), 3, 0), ((6, 70, 3), 3, 1), ((7, 31, 2), 3, 2), ((8, 28, 1), 5, 1)],
)
def test_cells_in_vectors(n, shape, size, pad):
    layer = random_layer(shape, n, size, pad, pool=2)
    assert layer.code.ints[FEW]
    images = rng.integers(0, 256, (3, *shape), np.uint8)
    maxima, first = maxima_by_loops(layer, images)
    found, places = Forward([layer]).with_places(images, 1)
    assert_allclose(found, maxima, rtol=1e-5, atol=1e-5)
    assert_array_equal(Forward([layer]).outputs(images, 1), found)
    assert_array_equal(
        np.stack(layer.place_starts(places), axis=-1)[places >= 0], first[first[..., 0] >= 0]
    )
    # A sum has the same bits as beside other templates.
    wide = replace(
        layer, templates=np.tile(layer.templates, (9, 1, 1, 1)), biases=np.tile(layer.biases, 9)
    )
    assert not wide.code.ints[FEW]
    assert_array_equal(Forward([wide]).outputs(images, 1)[..., :n], found)


def test_of_equal_maxima_the_first_is_the_place():
    images = np.full((20, 6, 6, 1), 200, np.uint8)
    layer = random_layer((6, 6, 1), 2, 2, pool=2)
    ones = np.ones((2, 2, 1), np.float32)
    fields = (np.array([ones, -ones]), np.zeros(2, np.float32))
    layer = TemplateLayer(layer.in_shape, *fields, (0, 0), layer.row_cells, layer.col_cells)
    maxima, places = Forward([layer]).with_places(images, 1)
    assert_allclose(maxima[..., 0], 800 / 255, rtol=1e-6)
    rows, columns = layer.place_starts(places[0, ..., 0])
    assert_array_equal(rows, [[0, 0], [2, 2]])
    assert_array_equal(columns, [[0, 2], [0, 2]])
    assert not maxima[..., 1].any()
    assert_array_equal(places[..., 1], -1)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(
    ("n", "pool", "grid", "depthwise"),
    [
        (4, 2, None, False),
        (9, 1, None, False),
        (5, 1, 2, False),
        (5, 2, None, True),
        (5, -2, None, False),
        (5, -2, None, True),
    ],
)
def test_gradients_are_those_of_differences(n, pool, grid, depthwise, dtype):
    images = BYTES[:9] if dtype == np.uint8 else FLOATS[:9]
    layer = random_layer(images.shape[1:], n, 3, 1, pool, grid, depthwise)
    moving = (MovingDepthwise if depthwise else MovingTemplates)(layer)
    values, seen = moving.forward(images, 1)
    G = np.random.default_rng(2).normal(size=values.shape).astype(np.float32)
    own, below = moving.backward(images, seen, G, 1, True)
    for parameter, gradient in zip(moving.parameters, own, strict=True):
        for place in np.random.default_rng(3).integers(parameter.size, size=4):
            slopes = []
            for step in (1e-3, -1e-3):
                before = parameter.flat[place]
                parameter.flat[place] = before + step
                moving.moved()
                slopes.append(float((moving.forward(images, 1)[0].astype(float) * G).sum()))
                parameter.flat[place] = before
            moving.moved()
            difference = (slopes[0] - slopes[1]) / 2e-3
            assert gradient.flat[place] == pytest.approx(difference, rel=0.03, abs=0.05)
    if dtype == np.float32:
        direction = np.random.default_rng(4).normal(size=images.shape).astype(np.float32)
        ends = [moving.forward(images + step * direction, 1)[0] for step in (1e-4, -1e-4)]
        difference = ((ends[0].astype(float) - ends[1]) * G).sum() / 2e-4
        assert (below * direction).sum() == pytest.approx(difference, rel=0.03, abs=0.05)


@pytest.mark.parametrize("depthwise", [False, True])
def test_gradients_do_not_depend_on_threads(depthwise):
    images = np.concatenate([FLOATS] * 4)
    layer = random_layer(images.shape[1:], 5, 3, 1, 2, None, depthwise)
    moving = (MovingDepthwise if depthwise else MovingTemplates)(layer)
    values, seen = moving.forward(images, 1)
    one = moving.backward(images, seen, values, 1, True)
    three = moving.backward(images, seen, values, 3, True)
    for first, second in zip((*one[0], one[1]), (*three[0], three[1]), strict=True):
        assert_array_equal(first, second)


def test_templates_are_centers_of_patches():
    def fitted(seed=0, **options):
        layer = Templates(3, 4, padding=2, n_patches=500, **options)
        return layer.fit(BYTES, None, np.random.default_rng(seed))

    layer = fitted()
    assert layer.templates.shape == (3, 4, 4, 2)
    assert_allclose(layer.templates.sum(axis=(1, 2, 3)), 0, atol=1e-5)
    assert_allclose(np.square(layer.templates).sum(axis=(1, 2, 3)), 1, rtol=1e-5)
    assert not layer.biases.any()
    assert_array_equal(fitted().templates, layer.templates)
    assert not np.array_equal(fitted(1).templates, layer.templates)
    plain = fitted(contrast="none").templates
    assert plain.min() >= 0
    own = Depthwise(2, 4, n_patches=500).fit(BYTES, None, np.random.default_rng(0))
    assert (own.templates.shape, own.sources.tolist()) == ((4, 4, 4, 1), [0, 0, 1, 1])


def test_positions_between_strides_cost_nothing():
    every = Templates(3, 4, n_patches=500).fit(BYTES, None, np.random.default_rng(0))
    strided = Templates(3, 4, stride=3, n_patches=500).fit(BYTES, None, np.random.default_rng(0))
    assert strided.out_shape == (4, 3, 3)
    expected = Forward([every]).outputs(BYTES, 1)[:, ::3, ::3]
    assert_array_equal(Forward([strided]).outputs(BYTES, 1), expected)
    assert strided.macs() == every.macs() * 12 // 80
    assert len(strided.code.ints) < len(every.code.ints)


def test_a_smaller_layer_has_the_same_outputs():
    layer = random_layer(FLOATS.shape[1:], 9, 3, 1, grid=3)
    every = Forward([layer]).outputs(FLOATS, 1).reshape(len(FLOATS), -1)
    outputs = np.array([40, 3, 12, 3, 39])
    selection = layer.take(outputs)
    smaller = Forward([selection.layer]).outputs(FLOATS, 1).reshape(len(FLOATS), -1)
    assert_array_equal(smaller[:, selection.outputs], every[:, outputs])
    assert selection.layer.n_templates == 2
    # Rows and columns of cells that no output needs are not computed.
    assert selection.layer.out_shape == (2, 2, 2)


def test_depthwise_templates_ask_for_their_channels_alone():
    layer = random_layer((9, 9, 6), 4, 3, depthwise=True)
    layer = DepthwiseLayer(
        layer.in_shape, layer.templates, layer.biases, layer.pads, layer.row_cells,
        layer.col_cells, np.array([5, 1, 1, 3]),
    )  # fmt: skip
    selection = layer.take(np.arange(layer.out_shape[0] * layer.out_shape[1]) * 4 + 3)
    assert selection.channels.tolist() == [3]
    narrow = layer.take_channels(np.array([1, 3, 5]))
    images = rng.random((4, 9, 9, 6), np.float32)
    expected = Forward([layer]).outputs(images, 1)
    assert_array_equal(Forward([narrow]).outputs(images[..., [1, 3, 5]], 1), expected)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_templates": 0}, {"n_templates": 2.0}, {"size": 0}, {"size": 65}, {"pool": 0},
        {"pool": True}, {"padding": -1}, {"padding": 65}, {"n_patches": 0}, {"grid": 0},
        {"contrast": "high"}, {"stride": 0}, {"stride": 2, "pool": 2}, {"stride": 2, "grid": 1},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        Templates(**parameters).check_parameters()


def test_images_that_are_too_small_or_too_alike_are_refused():
    for images in (BYTES[:, :5], BYTES[:, :, :5]):
        with pytest.raises(InputError, match=r"^images: got.*at least 6×6"):
            Templates(4, 5, pool=2).fit(images, None, rng)
    with pytest.raises(InputError, match=r"^images: got.*one color.*pictures with edges"):
        Templates(4).fit(np.zeros((5, 9, 9, 1), np.uint8), None, rng)
    with pytest.raises(InputError, match=r"^n_patches: got.*memory"):
        Templates(4, n_patches=10**12).fit(BYTES, None, rng)
    # A grid sees small images with zeros around them.
    small = Templates(4, 5, grid=2, n_patches=300).fit(BYTES[:, :3, :2], None, rng)
    assert small.out_shape == (1, 2, 4)


BROKEN = [
    ("templates", lambda a: a[:1]), ("templates", lambda a: a[:, :2]),
    ("templates", lambda a: a[0]), ("templates", lambda a: a.astype(np.float64)),
    ("templates", lambda a: a * np.nan), ("templates", lambda a: np.concatenate([a, a], axis=3)),
    ("biases", lambda a: a[:1]), ("biases", lambda a: a[None]),
    ("biases", lambda a: a.astype(np.int64)), ("biases", lambda a: a + np.float32(np.inf)),
]  # fmt: skip


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(("name", "change"), BROKEN)
def test_broken_descriptions_are_refused(name, change, depthwise):
    layer = random_layer(FLOATS.shape[1:], 3, 3, 1, 2, None, depthwise)
    cls, state, arrays = type(layer), layer.to_state(), layer.arrays
    again = cls.from_state(state, arrays, layer.in_shape)
    assert_array_equal(Forward([again]).outputs(FLOATS, 1), Forward([layer]).outputs(FLOATS, 1))
    with pytest.raises(InputError):
        cls.from_state(state, {**arrays, name: change(arrays[name])}, layer.in_shape)
    for key, value in (
        ("pads", [1]), ("pads", [-1, 1]), ("pads", "1"), ("row_cells", [0, 2]), ("row_cells", []),
        ("row_cells", [0] * 99), ("col_cells", ["a"]), ("col_cells", [-2, 0]), ("col_cells", None),
    ):  # fmt: skip
        with pytest.raises(InputError):
            cls.from_state({**state, key: value}, arrays, layer.in_shape)
    if depthwise:
        for sources in ([0], [0, 1, 2], [0, -1, 1], None):
            with pytest.raises(InputError):
                cls.from_state({**state, "sources": sources}, arrays, layer.in_shape)
