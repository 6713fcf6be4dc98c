"""Channels of images against loops over pixels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import Channels
from visionshare.errors import InputError
from visionshare.generators.layers.channels import ChannelLayer
from visionshare.generators.layers.forward import Forward

rng = np.random.default_rng(0)
COLOR = rng.integers(0, 256, (20, 13, 11, 3), np.uint8)
GRAY = COLOR[..., 0]
EVERY = ("orientations", "opponent", "magnitude", "gray", "ycbcr", "rgb")
# In 1/256, and what they are rounded from: JPEG's colors, and differences of colors.
WEIGHTS = {
    "gray": [[77, 150, 29]],
    "rgb": 256 * np.eye(3),
    "ycbcr": [[77, 150, 29], [-43, -85, 128], [128, -107, -21]],
    "opponent": [[128, -128, 0], [64, 64, -128]],
}
STANDARD = {
    "gray": [[0.299, 0.587, 0.114]],
    "rgb": np.eye(3),
    "ycbcr": [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]],
    "opponent": [[0.5, -0.5, 0], [0.25, 0.25, -0.5]],
}


def gradient_by_loops(image, y, x):
    """Return the gradient of the value where it is largest, the first of equal ones."""
    H, W, C = image.shape
    found = np.zeros(2)
    for c in range(C):
        dx = image[y, min(x + 1, W - 1), c] - image[y, max(x - 1, 0), c]
        dy = image[min(y + 1, H - 1), x, c] - image[max(y - 1, 0), x, c]
        if dx * dx + dy * dy > 4 * found @ found:
            found = np.array([dx, dy]) / 2
    return found


def shares_by_angle(gradient, n):
    """Return the multiples of the two directions that a gradient is the sum of."""
    out = np.zeros(n)
    angle = np.arctan2(gradient[1], gradient[0]) % np.pi
    k = int(angle * n / np.pi)
    directions = np.array([[np.cos(a), np.sin(a)] for a in (k * np.pi / n, (k + 1) * np.pi / n)])
    out[[k % n, (k + 1) % n]] = np.abs(np.linalg.solve(directions.T, gradient))
    return out


def means_by_loops(plane, window):
    reach, out = window // 2, np.zeros(plane.shape)
    for y, x in np.ndindex(plane.shape):
        part = plane[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1]
        out[y, x] = part.mean()
    return out


def channels_by_loops(family, image):
    """Return the maps of one image in float64, channel by channel."""
    x = image.reshape(family.in_shape) / (255 if image.dtype == np.uint8 else 1.0)
    H, W, C = x.shape
    local, w, eps = family.normalization == "local", family.window, family.epsilon
    gradients = np.array([[gradient_by_loops(x, i, j) for j in range(W)] for i in range(H)])
    size = np.linalg.norm(gradients, axis=2)
    by = means_by_loops(size, w) + eps if local else 1
    planes = []
    for channel in family.channels:
        if channel == "magnitude":
            planes.append(size / by)
        elif channel == "orientations":
            n = family.n_orientations
            shares = [[shares_by_angle(g, n) for g in row] for row in gradients]
            planes += [plane / by for plane in np.moveaxis(np.array(shares), 2, 0)]
        else:
            for weights in WEIGHTS[channel] if C == 3 else [[256]]:
                plane = x @ np.array(weights) / 256
                if local:
                    plane = plane - means_by_loops(plane, w)
                    plane = plane / (np.sqrt(means_by_loops(plane**2, w)) + eps)
                planes.append(plane)
    rows, cols, n_maps = family.out_shape
    p, maps = family.pool, np.moveaxis(np.array(planes), 0, 2)
    cells = maps[: rows * p, : cols * p].reshape(rows, p, cols, p, n_maps)
    return cells.mean(axis=(1, 3))


def raster(images):
    """Return images as (n, H, W, C)."""
    shape = {2: (1, *images.shape[1:], 1), 3: (*images.shape[1:], 1)}
    return images.reshape(len(images), *shape.get(images.ndim, images.shape[1:]))


def fitted(images=COLOR, channels=EVERY, *rest, **parameters):
    layer = Channels(channels, *rest, **parameters)
    layer.check_parameters()
    return layer.fit(raster(images), None, rng)


def maps_of(layer, images, n_jobs=1):
    return Forward([layer]).outputs(raster(images), n_jobs)


@pytest.mark.parametrize("normalization", ["none", "local"])
@pytest.mark.parametrize(("pool", "n", "window"), [(1, 6, 3), (2, 2, 5), (3, 5, 31)])
def test_channels_are_what_the_formulas_say(pool, n, window, normalization):
    floats = rng.normal(size=(20, 9, 14, 3)).astype(np.float32)
    for images in (COLOR, floats):
        family = fitted(images, EVERY, n, pool, normalization, window)
        maps = maps_of(family, images)
        expected = np.array([channels_by_loops(family, image) for image in images[:3]])
        assert maps.shape[1:] == family.out_shape == expected.shape[1:]
        assert_allclose(maps[:3], expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("normalization", ["none", "local"])
@pytest.mark.parametrize("values", [1, 2])
def test_gradients_of_other_images_than_color_ones(values, normalization):
    channels = ("gray", "magnitude", "orientations")[values - 1 :]
    for images in (COLOR[..., :values], (COLOR[..., :values] / 255).astype(np.float32)):
        family = fitted(images, channels, 4, 2, normalization, 5)
        expected = np.array([channels_by_loops(family, image) for image in images])
        assert_allclose(maps_of(family, images), expected, rtol=1e-5, atol=1e-5)
    assert_array_equal(
        maps_of(fitted(GRAY, EVERY[:1]), GRAY),
        maps_of(fitted(COLOR[..., :1], EVERY[:1]), COLOR[..., :1]),
    )


@pytest.mark.parametrize("channel", WEIGHTS)
def test_colors_of_bytes_are_exact(channel):
    assert_allclose(np.array(WEIGHTS[channel]) / 256, STANDARD[channel], atol=1 / 512)
    sums = (COLOR.astype(int) @ np.array(WEIGHTS[channel], int).T).astype(np.float32)
    expected = sums / np.float32(256) * np.float32(1 / 255)
    assert_array_equal(maps_of(fitted(COLOR, (channel,)), COLOR), expected)


def test_two_directions_are_the_axes():
    both = maps_of(fitted(GRAY, ("orientations",), 2), GRAY)
    wide = np.pad(GRAY.astype(np.float32), ((0, 0), (1, 1), (1, 1)), mode="edge")
    along, down = wide[:, 1:-1, 2:] - wide[:, 1:-1, :-2], wide[:, 2:, 1:-1] - wide[:, :-2, 1:-1]
    expected = np.abs(np.stack([along, down], axis=-1)) / 2 * np.float32(1 / 255)
    assert_array_equal(both, expected)


@pytest.mark.parametrize("n", [2, 3, 4, 6, 9, 64])
def test_a_gradient_is_the_sum_of_what_its_directions_have(n):
    """Ramps in all directions: two neighbors share each, and alone where it points their way."""
    y, x = np.indices((5, 5)) - 2.0
    angles = np.concatenate([np.arange(2 * n) * np.pi / n, rng.uniform(0, 2 * np.pi, 40)])
    ramps = np.array([np.cos(a) * x + np.sin(a) * y for a in angles]).astype(np.float32)
    maps = maps_of(fitted(ramps, ("orientations", "magnitude"), n), ramps)[:, 2, 2]
    shares, size = maps[:, :n], maps[:, n]
    assert_allclose(size, 1, rtol=1e-5)
    assert ((shares > 1e-5).sum(axis=1) <= 2).all()
    assert_allclose(shares[: 2 * n], np.tile(np.eye(n), (2, 1)), atol=2e-5)
    expected = [shares_by_angle(np.array([np.cos(a), np.sin(a)]), n) for a in angles[2 * n :]]
    assert_allclose(shares[2 * n :], expected, atol=2e-5)
    # Never less than the length, and little more where directions are many.
    total = shares.sum(axis=1)
    assert total.min() > 1 - 1e-5
    assert total.max() < 1 / np.cos(np.pi / n / 2) + 1e-5


@pytest.mark.parametrize("normalization", ["none", "local"])
def test_what_is_flat_stays_0(normalization):
    """Without an edge there is no contrast, whatever rounding makes of means."""
    for flat in (np.full((2, 7, 9, 3), 77, np.uint8), np.full((2, 7, 9, 3), 0.3, np.float32)):
        channels = ("opponent", "magnitude", "orientations")
        family = fitted(flat, channels, normalization=normalization, window=5)
        assert_allclose(maps_of(family, flat), 0, atol=1e-4)


def test_contrast_and_brightness_do_not_matter_after_normalization():
    images = rng.random((5, 12, 12)).astype(np.float32)
    channels = ("gray", "magnitude", "orientations")
    family = fitted(images, channels, normalization="local", window=5, epsilon=1e-6)
    before, after = (maps_of(family, x) for x in (images, images * 4 + 3))
    assert_allclose(after, before, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("normalization", ["none", "local"])
def test_bits_depend_neither_on_threads_nor_on_batches(normalization):
    images = np.concatenate([COLOR] * 5)
    family = fitted(images, pool=2, normalization=normalization)
    maps = maps_of(family, images)
    for n_jobs in (2, 3):
        assert_array_equal(maps_of(family, images, n_jobs), maps)
    for step in (1, 7, 33):
        parts = [maps_of(family, images[i : i + step]) for i in range(0, len(images), step)]
        assert_array_equal(np.concatenate(parts), maps)
    views = np.repeat(images, 2, axis=0)[::2]
    assert_array_equal(maps_of(family, views), maps)


def test_a_vector_is_one_row():
    vectors = rng.random((6, 20), np.float32)
    family = fitted(vectors, ("gray", "orientations"), 3, normalization="local", window=5)
    assert family.out_shape == (1, 20, 4)
    expected = np.array([channels_by_loops(family, v) for v in vectors])
    assert_allclose(maps_of(family, vectors), expected, rtol=1e-4, atol=1e-5)


def test_maps_are_counted_once():
    pixels, cells = 13 * 11, 6 * 5 * 5
    layer = fitted(COLOR, ("opponent", "orientations"), 3, 2)
    # Weights of two colors, a gradient of three values, three directions; five maps in cells.
    assert layer.macs() == pixels * (2 + 3 + 4 * 3 + 1 + 4 * 3 + 5) + cells
    assert fitted(GRAY, ("gray",)).macs() == 13 * 11
    local = fitted(GRAY, ("gray", "magnitude"), normalization="local", window=5)
    assert local.macs() == 13 * 11 * (4 + 1 + (4 * 5 + 2) + 2 * 5 + 1) + 13 * 11 * 2


def test_a_description_makes_the_layer_again():
    layer = fitted(COLOR, ("opponent", "orientations"), 3, 2, "local", 5)
    again = ChannelLayer.from_state(layer.to_state(), {}, layer.in_shape)
    assert_array_equal(maps_of(again, COLOR), maps_of(layer, COLOR))
    assert again.describe(7)["channel"] == layer.describe(7)["channel"]


def test_broken_descriptions_are_refused():
    layer = fitted(COLOR, ("opponent", "orientations"), 3, 2)
    state = layer.to_state()
    for key, value in (
        ("pool", 0), ("pool", 14), ("pool", "2"), ("n_orientations", 10**9), ("channels", "gray"),
        ("channels", [[]]), ("channels", ["opponent"] * 4), ("channels", {}),
        ("window", 10**9), ("epsilon", "0.1"), ("epsilon", 0.0), ("normalization", None),
    ):  # fmt: skip
        with pytest.raises(InputError):
            ChannelLayer.from_state({**state, key: value}, {}, layer.in_shape)
        missing = {name: value for name, value in state.items() if name != key}
        with pytest.raises(InputError):
            ChannelLayer.from_state(missing, {}, layer.in_shape)
    for shape in ((13, 11, 1), (13, 11, 4), (1, 11, 3)):
        with pytest.raises(InputError):
            ChannelLayer.from_state(state, {}, shape)


@pytest.mark.parametrize(
    "parameters",
    [
        {"channels": ()}, {"channels": "gray"}, {"channels": ("grey",)}, {"channels": (1,)},
        {"channels": ("gray", "gray")}, {"channels": None}, {"n_orientations": 1},
        {"n_orientations": 65}, {"n_orientations": 2.0}, {"pool": 0}, {"pool": 65}, {"pool": True},
        {"normalization": "global"}, {"window": 1}, {"window": 4}, {"window": 65},
        {"epsilon": 0.0}, {"epsilon": np.nan}, {"epsilon": True}, {"epsilon": "small"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        Channels(**parameters).check_parameters()


@pytest.mark.parametrize("channel", ["rgb", "ycbcr", "opponent"])
def test_gray_images_have_no_colors(channel):
    with pytest.raises(InputError, match=rf"^channels: got '{channel}'.*no colors"):
        fitted(GRAY, ("gray", channel))


def test_images_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"^channels: got 'gray'.*no gray"):
        fitted(COLOR[..., :2], ("gray",))
    with pytest.raises(InputError, match=r"^images: got.*at least 12×12"):
        fitted(GRAY, ("orientations",), pool=12)
