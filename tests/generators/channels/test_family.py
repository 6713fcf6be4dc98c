"""Channels of images against loops over pixels, and the family around the features on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import ChannelMaps, Deslanted, LearnedMaps, PatchTemplates, Pixels
from visionshare.errors import InputError
from visionshare.generators import family_from_state

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
    x = image.reshape(family.raster_shape) / (255 if image.dtype == np.uint8 else 1.0)
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
    rows, cols, n_maps = family.map_shape_
    p, maps = family.pool, np.moveaxis(np.array(planes), 0, 2)
    cells = maps[: rows * p, : cols * p].reshape(rows, p, cols, p, n_maps)
    return cells.mean(axis=(1, 3))


def fitted(images=COLOR, channels=EVERY, *rest, **parameters):
    return ChannelMaps(Pixels(), channels, *rest, **parameters).fit(images)


@pytest.mark.parametrize("normalization", ["none", "local"])
@pytest.mark.parametrize(("pool", "n", "window"), [(1, 6, 3), (2, 2, 5), (3, 5, 31)])
def test_channels_are_what_the_formulas_say(pool, n, window, normalization):
    floats = rng.normal(size=(20, 9, 14, 3)).astype(np.float32)
    for images in (COLOR, floats):
        family = fitted(images, EVERY, n, pool, normalization, window)
        maps = family.inner_images(images)
        expected = np.array([channels_by_loops(family, image) for image in images[:3]])
        assert maps.shape[1:] == family.map_shape_ == expected.shape[1:]
        assert_allclose(maps[:3], expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("normalization", ["none", "local"])
@pytest.mark.parametrize("values", [1, 2])
def test_gradients_of_other_images_than_color_ones(values, normalization):
    channels = ("gray", "magnitude", "orientations")[values - 1 :]
    for images in (COLOR[..., :values], (COLOR[..., :values] / 255).astype(np.float32)):
        family = fitted(images, channels, 4, 2, normalization, 5)
        expected = np.array([channels_by_loops(family, image) for image in images])
        assert_allclose(family.inner_images(images), expected, rtol=1e-5, atol=1e-5)
    assert_array_equal(
        fitted(GRAY, EVERY[:1]).inner_images(GRAY),
        fitted(COLOR[..., :1], EVERY[:1]).inner_images(COLOR[..., :1]),
    )


@pytest.mark.parametrize("channel", WEIGHTS)
def test_colors_of_bytes_are_exact(channel):
    assert_allclose(np.array(WEIGHTS[channel]) / 256, STANDARD[channel], atol=1 / 512)
    sums = (COLOR.astype(int) @ np.array(WEIGHTS[channel], int).T).astype(np.float32)
    expected = sums / np.float32(256) * np.float32(1 / 255)
    assert_array_equal(fitted(COLOR, (channel,)).inner_images(COLOR), expected)


def test_two_directions_are_the_axes():
    both = fitted(GRAY, ("orientations",), 2).inner_images(GRAY)
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
    maps = fitted(ramps, ("orientations", "magnitude"), n).inner_images(ramps)[:, 2, 2]
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
        family = fitted(flat, ("opponent", "magnitude", "orientations"), window=5)
        family.normalization = normalization
        assert_allclose(family.inner_images(flat), 0, atol=1e-4)


def test_contrast_and_brightness_do_not_matter_after_normalization():
    images = rng.random((5, 12, 12)).astype(np.float32)
    channels = ("gray", "magnitude", "orientations")
    family = fitted(images, channels, normalization="local", window=5, epsilon=1e-6)
    before, after = (family.inner_images(x) for x in (images, images * 4 + 3))
    assert_allclose(after, before, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("normalization", ["none", "local"])
def test_bits_depend_neither_on_threads_nor_on_batches(normalization):
    images = np.concatenate([COLOR] * 5)
    family = fitted(images, pool=2, normalization=normalization)
    maps = family.inner_images(images)
    for n_jobs in (2, 3):
        assert_array_equal(family.inner_images(images, n_jobs), maps)
    for step in (1, 7, 33):
        parts = [family.inner_images(images[i : i + step]) for i in range(0, len(images), step)]
        assert_array_equal(np.concatenate(parts), maps)
    views = np.repeat(images, 2, axis=0)[::2]
    assert_array_equal(family.inner_images(views), maps)


def test_a_vector_is_one_row():
    vectors = rng.random((6, 20), np.float32)
    family = fitted(vectors, ("gray", "orientations"), 3, normalization="local", window=5)
    assert family.map_shape_ == (1, 20, 4)
    expected = np.array([channels_by_loops(family, v) for v in vectors])
    assert_allclose(family.inner_images(vectors), expected, rtol=1e-4, atol=1e-5)


def patches_on_channels():
    inside = PatchTemplates(2, 6, 2, masks="cells", padding=0, n_patches=500)
    return ChannelMaps(inside, ("opponent", "orientations"), 3, 2).fit(COLOR)


def test_features_are_those_of_channels():
    family = patches_on_channels()
    maps = family.inner_images(COLOR)
    assert_array_equal(family.transform(COLOR), family.part_.transform(maps))
    assert_array_equal(family.transform_columns(COLOR, n_jobs=2), family.part_.transform(maps).T)
    ids = np.array([5, 0, 11])
    taken = family.take(ids)
    assert_array_equal(taken.transform(COLOR), family.part_.take(ids).transform(maps))
    for chosen in (np.empty(0, int), ids):
        added = [family.macs(np.append(chosen, f)) - family.macs(chosen) for f in (1, 2)]
        assert_array_equal(family.added_macs(chosen, np.array([1, 2])), added)
    said = family.describe(7)
    assert (said["kind"], said["feature"]["kind"]) == ("channels", "patch")
    names = ["opponent 0", "opponent 1", "orientations 0", "orientations 1", "orientations 2"]
    assert said["channels"] == names
    weights = rng.normal(size=(2, 3)).astype(np.float32)
    sums = taken.transform(COLOR) @ weights.T
    assert_allclose(taken.weighted_sums(COLOR, weights), sums, rtol=1e-4, atol=1e-5)


def test_maps_are_counted_once():
    family = patches_on_channels()
    pixels, cells = 13 * 11, 6 * 5 * 5
    # Weights of two colors, a gradient of three values, three directions; five maps in cells.
    assert family.shared_macs == pixels * (2 + 3 + 4 * 3 + 1 + 4 * 3 + 5) + cells
    ids = np.array([3, 1])
    assert family.macs(ids) == family.part_.macs(ids) + family.shared_macs
    assert family.macs(np.empty(0, int)) == 0
    gray = fitted(GRAY, ("gray",))
    assert gray.shared_macs == 13 * 11
    local = fitted(GRAY, ("gray", "magnitude"), normalization="local", window=5)
    assert local.shared_macs == 13 * 11 * (4 + 1 + (4 * 5 + 2) + 2 * 5 + 1) + 13 * 11 * 2


def test_a_description_makes_the_family_again():
    family = patches_on_channels().take(np.array([2, 0]))
    again = family_from_state(*family.to_state())
    assert_array_equal(again.transform(COLOR), family.transform(COLOR))
    assert again.get_params()["channels"] == ("opponent", "orientations")
    assert (again.macs(), again.map_shape_) == (family.macs(), family.map_shape_)


def test_broken_descriptions_are_refused():
    state, arrays = patches_on_channels().to_state()
    parts = state["parts"]
    for part in ([], parts * 2, None, [3], [{**parts[0], "image_shape": [6, 5, 4]}]):
        with pytest.raises(InputError):
            family_from_state({**state, "parts": part}, arrays)
    for key, value in (
        ("pool", 3), ("pool", 0), ("pool", 14), ("pool", "2"), ("n_orientations", 4),
        ("n_orientations", 10**9), ("channels", ["orientations"]), ("channels", "gray"),
        ("channels", [[]]), ("channels", ["opponent"] * 4), ("channels", {}),
        ("window", 10**9), ("epsilon", "0.1"), ("epsilon", 0.0), ("normalization", None),
    ):  # fmt: skip
        changed = {**state, "parameters": {**state["parameters"], key: value}}
        with pytest.raises(InputError):
            family_from_state(changed, arrays)
    for shape in ([13, 11], [13, 11, 1], [13, 11, 4], [3, 3, 3], [0, 11, 3], [1, 2**16, 3]):
        with pytest.raises(InputError):
            family_from_state({**state, "image_shape": shape}, arrays)
    for missing in ("parts", "parameters"):
        with pytest.raises(InputError):
            family_from_state({k: v for k, v in state.items() if k != missing}, arrays)


@pytest.mark.parametrize(
    "parameters",
    [
        {"channels": ()}, {"channels": "gray"}, {"channels": ("grey",)}, {"channels": (1,)},
        {"channels": ("gray", "gray")}, {"channels": None}, {"n_orientations": 1},
        {"n_orientations": 65}, {"n_orientations": 2.0}, {"pool": 0}, {"pool": 65}, {"pool": True},
        {"normalization": "global"}, {"window": 1}, {"window": 4}, {"window": 65},
        {"epsilon": 0.0}, {"epsilon": np.nan}, {"epsilon": True}, {"epsilon": "small"},
        {"family": None}, {"family": Pixels}, {"family": "pixels"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        ChannelMaps(**{"family": Pixels(), **parameters}).fit(GRAY)


@pytest.mark.parametrize("channel", ["rgb", "ycbcr", "opponent"])
def test_gray_images_have_no_colors(channel):
    with pytest.raises(InputError, match=rf"^channels: got '{channel}'.*no colors"):
        ChannelMaps(Pixels(), ("gray", channel)).fit(GRAY)


def test_images_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"^channels: got 'gray'.*no gray"):
        ChannelMaps(Pixels(), ("gray",)).fit(COLOR[..., :2])
    with pytest.raises(InputError, match=r"^images: got.*at least 12×12"):
        ChannelMaps(Pixels(), pool=12).fit(GRAY)
    with pytest.raises(InputError, match=r"^images: got"):
        fitted().transform(COLOR[:, 1:])
    # Views of one byte: the images themselves take no memory.
    with pytest.raises(InputError, match=r"^channels: got.*memory"):
        ChannelMaps(Pixels()).fit(np.broadcast_to(np.uint8(3), (16, 2**15, 2**15)))
    with pytest.raises(InputError, match=r"^patch_size: got 0"):
        ChannelMaps(PatchTemplates(patch_size=0)).fit(GRAY)


def test_any_family_may_lie_on_channels():
    inside = LearnedMaps(PatchTemplates(2, 4, 1, n_patches=300), 3, 2, 1, n_patches=300)
    for part in (inside, Deslanted(Pixels())):
        family = ChannelMaps(part, n_orientations=2, pool=2).fit(GRAY)
        maps = family.inner_images(GRAY)
        assert_array_equal(family.transform(GRAY), family.part_.transform(maps))
        assert len(family.sample(3, np.random.default_rng(0))) == 3
