"""Chains against loops over positions, and the family around them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Chains, Deslanted, LearnedMaps
from visionshare.errors import InputError
from visionshare.generators import family_from_state

rng = np.random.default_rng(0)
BYTES = rng.integers(0, 256, (40, 15, 13, 2), np.uint8)
GRAY = BYTES[..., 0]


def map_by_loops(image, template, bias, pool):
    """Return a map (h, w) of an image (H, W, C), response by response in float64."""
    q = len(template)
    rows, cols = ((side - q + 1) // pool for side in image.shape[:2])
    out = np.zeros((rows, cols))
    for y, x in np.ndindex(rows * pool, cols * pool):
        response = np.sum(image[y : y + q, x : x + q] * template.astype(np.float64)) + bias
        out[y // pool, x // pool] = max(out[y // pool, x // pool], response)
    return out


def features_by_loops(family, images):
    """Return the features, chain by chain: no map is shared."""
    x = images.reshape(len(images), *family.raster_shape).astype(np.float64)
    x = x / 255 if images.dtype == np.uint8 else x
    out = np.zeros((len(images), family.n_features_))
    for f, cell in enumerate(family.layout_[:, 1]):
        said = family.describe(f)
        r, c = divmod(int(cell), family.grid)
        for i, image in enumerate(x):
            seen = image
            for template, bias, pool in zip(
                said["templates"], said["biases"], said["pools"], strict=True
            ):
                seen = map_by_loops(seen, template, bias, pool)[..., None]
            rows, cols = seen.shape[:2]
            row_of, col_of = (np.arange(n) * family.grid // n for n in (rows, cols))
            out[i, f] = seen[row_of == r][:, col_of == c].max()
    return out


def random_chains(images, *parameters, **others):
    """Return fitted chains whose templates and biases are random numbers."""
    family = Chains(*parameters, **{"n_patches": 800, **others}).fit(images)
    draw = np.random.default_rng(1)
    return family.of([
        own.of(draw.normal(size=own.templates.shape), draw.normal(size=len(own.biases)) / 2)
        for own in family.layers_
    ])  # fmt: skip


SHAPES = [
    ((3, 3), (2, 1), 2), ((4, 2), (1, 2), 3), ((2, 5), (1, 3), 2), ((5, 3), (3, 1), 1),
    ((2, 3, 2), (1, 2, 1), 2), ((3, 2, 2), (2, 1, 1), 2), ((1, 1), (1, 1), 4),
]  # fmt: skip


@pytest.mark.parametrize(
    "images", [BYTES, GRAY, (BYTES / 255).astype(np.float32)], ids=["color", "gray", "floats"]
)
@pytest.mark.parametrize(("sizes", "pools", "grid"), SHAPES, ids=str)
def test_features_are_the_largest_of_the_last_map(sizes, pools, grid, images):
    if max(sizes) == 1:
        # Patches of one value have no contrast, but chains of them have a meaning.
        parameters = {"n_chains": 2, "sizes": (2, 2), "pools": pools, "grid": grid}
        family = random_chains(images, **parameters, n_first=2)
        family.set_params(sizes=sizes)
        family.layers_ = [own.of(own.templates[:, :1, :1], own.biases) for own in family.layers_]
    else:
        family = random_chains(images, 9, sizes, pools, n_first=3, n_second=5, grid=grid)
    # The last images are fewer than lie side by side.
    for part in (slice(2), slice(37, 40)):
        expected = features_by_loops(family, images[part])
        assert_allclose(family.transform(images)[part], expected, rtol=1e-4, atol=1e-4)
    assert family.n_features_ == len(family.layers_[-1].templates) * grid**2


@pytest.mark.parametrize("shape", range(len(SHAPES) - 1))
def test_bits_depend_neither_on_threads_nor_on_batches_nor_on_chains(shape):
    images = np.concatenate([GRAY] * 3)
    sizes, pools, grid = SHAPES[shape]
    family = random_chains(images, 11, sizes, pools, n_first=5, n_second=6, grid=grid)
    values, positions = family.values_and_positions(images)
    assert_array_equal(values, family.transform(images))
    for n_jobs in (2, 3):
        again = family.values_and_positions(images, n_jobs)
        assert_array_equal(again[0], values)
        assert_array_equal(again[1], positions)
    for step in (1, 5, 6, 17, 33, 64):
        parts = [family.transform(images[i : i + step]) for i in range(0, len(images), step)]
        assert_array_equal(np.concatenate(parts), values)
    for ids in ([7], [0, 1, 2, 8], [10, 3, 3, 9]):
        taken = family.take(ids)
        assert_array_equal(taken.transform(images), values[:, ids])
        assert_array_equal(taken.values_and_positions(images)[1], positions[:, ids])
        assert_array_equal(family.transform(images, ids), values[:, ids])


def test_positions_are_where_the_maxima_are():
    family = random_chains(GRAY, 8, (3, 2), (2, 2), n_first=3)
    values, positions = family.values_and_positions(GRAY[:4])
    assert (positions[values > 0] >= 0).all()
    assert_array_equal(positions[values == 0], -1)
    assert (values > 0).any()
    width = family.map_shapes[-1][1] * 2
    for i, f in zip(*np.nonzero(values), strict=True):
        said = family.describe(f)
        (first, last), (bias, last_bias) = said["templates"], said["biases"]
        seen = map_by_loops(GRAY[i][..., None] / 255, first, bias, 2)
        y, x = divmod(int(positions[i, f]), width)
        response = np.sum(seen[y : y + 2, x : x + 2] * last[..., 0]) + last_bias
        assert_allclose(values[i, f], response, rtol=1e-4)
        top, end, left, right = said["cell"]
        assert top <= y // 2 < end
        assert left <= x // 2 < right


def test_of_equal_maxima_the_first_counts():
    family = random_chains(GRAY, 2, (2, 2), (2, 1), n_first=1, grid=1)
    ones = [own.of(np.ones_like(own.templates), np.zeros(len(own.biases)))
            for own in family.layers_]  # fmt: skip
    values, positions = family.of(ones).values_and_positions(np.full((20, 15, 13), 200, np.uint8))
    assert_allclose(values, 3200 / 255, rtol=1e-6)
    assert_array_equal(positions, 0)


def test_templates_are_centers_of_patches():
    family = Chains(10, (3, 2, 2), (1, 2, 1), n_first=3, n_second=5, n_patches=600).fit(BYTES)
    shapes = [own.templates.shape for own in family.layers_]
    assert shapes == [(3, 3, 3, 2), (5, 2, 2, 1), (10, 2, 2, 1)]
    for own in family.layers_:
        assert_allclose(own.templates.sum(axis=(1, 2, 3)), 0, atol=1e-5)
        assert_allclose(np.square(own.templates).sum(axis=(1, 2, 3)), 1, rtol=1e-5)
        assert not own.biases.any()
    assert_array_equal(family.layers_[1].parents, [0, 0, 1, 1, 2])
    assert_array_equal(family.layers_[2].parents, np.arange(10) // 2)
    again = Chains(10, (3, 2, 2), (1, 2, 1), n_first=3, n_second=5, n_patches=600).fit(BYTES)
    assert_array_equal(again.transform(BYTES), family.transform(BYTES))
    other = Chains(10, (3, 2, 2), (1, 2, 1), 3, 5, n_patches=600, random_state=1).fit(BYTES)
    assert not np.array_equal(other.layers_[0].templates, family.layers_[0].templates)


def test_first_templates_that_nothing_follows_are_left_out():
    family = Chains(3, (3, 2), n_first=7, n_patches=600).fit(GRAY)
    assert [len(own.templates) for own in family.layers_] == [3, 3]
    assert_array_equal(family.groups, np.arange(12) // 4)


def three_layers():
    return Chains(10, (3, 2, 2), (1, 2, 1), n_first=3, n_second=5, n_patches=600).fit(BYTES)


def test_maps_that_chains_share_cost_once():
    family = three_layers()
    # Positions and values of a template of each layer.
    each = [13 * 11 * 9 * 2, 12 * 10 * 4, 5 * 4 * 4]
    assert family.map_macs == each
    assert family.macs() == 3 * each[0] + 5 * each[1] + 10 * each[2]
    # All cells of a chain; another chain of its second template; one of its first; none.
    assert family.macs([0]) == family.macs([0, 1, 2, 3]) == sum(each)
    assert_array_equal(
        family.added_macs(np.array([0]), np.array([3, 4, 8, 39])),
        [0, each[2], each[1] + each[2], sum(each)],
    )
    together = family.added_macs(np.array([0]), np.arange(16), np.array([0, 4, 8, 12]))
    assert_array_equal(together, [0, each[2], each[1] + each[2], each[1] + each[2]])
    assert family.macs(np.empty(0, int)) == 0
    blocks = family.block_ids(np.arange(40)[::-1])
    assert [len(block) for block in blocks] == [16, 16, 8]
    assert_array_equal(blocks[2], np.arange(39, 31, -1))


def test_what_is_taken_has_its_templates_alone():
    family = three_layers()
    taken = family.take([38, 3, 39, 3])
    assert [len(own.templates) for own in taken.layers_] == [2, 2, 2]
    assert_array_equal(taken.layout_, [[1, 2], [0, 3], [1, 3], [0, 3]])
    assert_array_equal(taken.groups, [1, 0, 1, 0])
    assert_array_equal(taken.transform(BYTES), family.transform(BYTES)[:, [38, 3, 39, 3]])
    none = family.take(np.empty(0, np.int64))
    assert (none.n_features_, none.macs()) == (0, 0)
    assert family_from_state(*none.to_state()).transform(BYTES).shape == (40, 0)
    said = taken.describe(0)
    assert (said["kind"], said["pools"], said["cell"]) == ("chain", [1, 2, 1], (3, 5, 0, 2))
    assert_array_equal(said["templates"][0], family.layers_[0].templates[2])
    assert_array_equal(said["templates"][2], family.layers_[2].templates[9])


def test_a_vector_is_one_row_and_too_small():
    with pytest.raises(InputError, match=r"^images: got \(20,\).*at least 14×14"):
        Chains().fit(rng.random((30, 20)))
    with pytest.raises(InputError, match=r"at least 9×9"):
        Chains(sizes=(2, 3, 2), pools=(2, 1, 1), grid=1).fit(rng.random((30, 7, 20)))


def test_chains_may_lie_on_other_images():
    inside = Chains(6, (2, 2), (1, 1), n_first=2, n_patches=500)
    maps = LearnedMaps(inside, 3, 3, n_patches=500).fit(GRAY)
    assert maps.part_.layers_[0].templates.shape == (2, 2, 2, 3)
    assert_array_equal(maps.groups, np.arange(24) // 4)
    assert Deslanted(inside).fit(GRAY).n_features_ == 24


BROKEN_ARRAYS = [
    ("templates1", lambda a: a[:, :2]), ("templates1", lambda a: a[..., :1]),
    ("templates1", lambda a: a[0]), ("templates2", lambda a: a.astype(np.float64)),
    ("templates2", lambda a: np.concatenate([a, a], axis=3)), ("templates3", lambda a: a * np.nan),
    ("biases1", lambda a: a[:1]), ("biases2", lambda a: a[None]),
    ("biases3", lambda a: a + np.float32(np.inf)), ("parents2", lambda a: a - 1),
    ("parents2", lambda a: a + 1), ("parents3", lambda a: a[::-1]), ("parents3", lambda a: a[1:]),
    ("parents3", lambda a: a.astype(np.float32)), ("parents3", lambda a: a[:, None]),
    ("layout", lambda a: a - 1), ("layout", lambda a: a * 4), ("layout", lambda a: a[:, :1]),
    ("layout", lambda a: a.ravel()), ("layout", lambda a: a.astype(np.float32)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), BROKEN_ARRAYS)
def test_broken_arrays_are_refused(name, change):
    state, arrays = three_layers().to_state()
    with pytest.raises(InputError, match=rf"^{name}: got"):
        family_from_state(state, {**arrays, name: change(arrays[name])})
    del arrays[name]
    with pytest.raises(InputError, match=rf"^{name}: got None"):
        family_from_state(state, arrays)


def test_broken_descriptions_are_refused():
    state, arrays = three_layers().to_state()
    for key, value in (("sizes", [3, 2]), ("sizes", [3, 2, 3]), ("sizes", [3] * 10**5),
                       ("sizes", "322"), ("pools", [1, 2, 6]), ("pools", [1, 2]), ("grid", 1),
                       ("grid", 5), ("grid", 2.0), ("n_chains", 0), ("pools", [1, 2, 10**9]),
                       ("sizes", [[3], 2, 2]), ("random_state", "0")):  # fmt: skip
        changed = {**state, "parameters": {**state["parameters"], key: value}}
        with pytest.raises(InputError):
            family_from_state(changed, arrays)
    for shape in ([15, 13], [15, 13, 3], [6, 13, 2], [15, 13, 2, 1], [0, 13, 2]):
        with pytest.raises(InputError):
            family_from_state({**state, "image_shape": shape}, arrays)
    with pytest.raises(InputError):
        family_from_state({k: v for k, v in state.items() if k != "parameters"}, arrays)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_chains": 0}, {"n_chains": 2**20 + 1}, {"n_chains": 2.0}, {"sizes": 3},
        {"sizes": (3,)}, {"sizes": (3, 0)}, {"sizes": (3, 65)}, {"sizes": (3, 3, 3, 3)},
        {"sizes": (3, True)}, {"pools": (1,)}, {"pools": (1, 1, 1)}, {"pools": (12, 1)},
        {"pools": "11"}, {"n_first": 0}, {"n_first": 1025}, {"n_second": 0}, {"grid": 0},
        {"grid": 65}, {"n_patches": 0}, {"n_patches": 10**12}, {"random_state": -1},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        Chains(**{"sizes": (3, 3), **parameters}).fit(GRAY)


def test_what_takes_more_memory_than_there_is_is_refused_before_work():
    # Views of one byte: the images themselves take no memory.
    large = np.broadcast_to(np.uint8(3), (9000, 2**15, 2**15))
    with pytest.raises(InputError, match=r"^n_patches: got 100000.*memory"):
        Chains().fit(large)
    many = np.broadcast_to(np.uint8(3), (1, 2**11, 2**11))
    with pytest.raises(InputError, match=r"^n_first: got 1024.*memory"):
        Chains(n_first=1024, pools=(1, 1)).fit(np.broadcast_to(many, (2000, 2**11, 2**11)))


def test_images_that_are_too_alike_are_refused():
    with pytest.raises(InputError, match=r"^n_first: got 16.*pictures with edges"):
        Chains().fit(np.zeros((5, 14, 14)))
    with pytest.raises(InputError, match=r"^n_chains: got 5000.*takes 2500 patches of a map"):
        Chains(5000, (3, 3), n_first=2, n_patches=2000).fit(GRAY)
