"""Local binary patterns: scikit-image's codes, a plain twin, cost, and textures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.feature import local_binary_pattern

from visionshare import ShareBoost, load
from visionshare.columns import ArrayColumns
from visionshare.errors import InputError
from visionshare.generators import family_from_state
from visionshare.generators.lbp import LocalBinaryPatterns
from visionshare.testing import check_family

rng = np.random.default_rng(0)
IMAGES = {
    "gray": rng.integers(0, 256, (30, 11, 9), np.uint8),
    "color": rng.integers(0, 256, (30, 8, 10, 3), np.uint8),
    "float": rng.normal(size=(30, 9, 9)).astype(np.float32),
    "flat": np.repeat(rng.integers(0, 3, (30, 10, 1), np.uint8), 12, axis=2),
}
METHODS = {"rotation-invariant": "uniform", "uniform": "nri_uniform"}


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("codes", METHODS)
def test_every_rule_of_a_family(images, codes):
    check_family(LocalBinaryPatterns(codes, radius=1.2, points=5, grid=2), IMAGES[images])


def _codes(image, family):
    """Return the code of every pixel inside, by the definition, one point at a time."""
    margin, points = int(np.ceil(family.radius)), family.points
    gray = image.reshape(*image.shape[:2], -1).astype(np.float64).sum(axis=2)
    out = np.full(gray.shape, -1)
    for y in range(margin, gray.shape[0] - margin):
        for x in range(margin, gray.shape[1] - margin):
            bits = []
            for p in range(points):
                total, taps = 0.0, family.circle
                for t in range(taps.starts[p], taps.starts[p + 1]):
                    neighbor = gray[y + taps.rows[t], x + taps.cols[t]]
                    total += float(taps.weights[t]) * (neighbor - gray[y, x])
                bits.append(total >= 0)
            changes = sum(bits[p] != bits[p - 1] for p in range(points))
            ones = sum(bits)
            if family.codes == "rotation-invariant":
                out[y, x] = ones if changes <= 2 else points + 1
            elif changes > 2:
                out[y, x] = points * (points - 1) + 2
            elif ones in (0, points):
                out[y, x] = 0 if ones == 0 else points * (points - 1) + 1
            else:
                first = next(p for p in range(points) if bits[p] and not bits[p - 1])
                out[y, x] = 1 + (ones - 1) * points + (points - first) % points
    return out


@pytest.mark.parametrize("images", ["gray", "color", "flat"])
@pytest.mark.parametrize("codes", METHODS)
def test_features_are_the_definition(images, codes):
    inputs = IMAGES[images][:6]
    family = LocalBinaryPatterns(codes, radius=1.7, points=6, grid=2).fit(inputs)
    features = family.transform(inputs).reshape(6, 4, family.n_codes)
    for image, histograms in zip(inputs, features, strict=True):
        by_pixel = _codes(image, family)
        assert (by_pixel >= 0).sum() == family.sizes.sum()
        for (y0, y1, x0, x1), histogram in zip(family.cells_, histograms, strict=True):
            cell = by_pixel[y0:y1, x0:x1].ravel()
            expected = np.bincount(cell, minlength=family.n_codes) / len(cell)
            assert_allclose(histogram, expected, rtol=1e-6)


@pytest.mark.parametrize("codes", METHODS)
@pytest.mark.parametrize(("points", "radius"), [(4, 1), (4, 2), (8, 1), (12, 1.5), (16, 2)])
def test_codes_are_those_of_scikit_image(codes, points, radius):
    images = np.random.default_rng(1).integers(0, 256, (4, 40, 40), np.uint8)
    margin = int(np.ceil(radius))
    family = LocalBinaryPatterns(codes, radius=radius, points=points, grid=1).fit(images)
    histograms = family.transform(images) * (40 - 2 * margin) ** 2
    for image, counts in zip(images, histograms, strict=True):
        theirs = local_binary_pattern(image, points, radius, METHODS[codes])
        inside = theirs[margin:-margin, margin:-margin].astype(int).ravel()
        expected = np.bincount(inside, minlength=family.n_codes)
        if points == 4:
            assert_allclose(counts, expected, atol=1e-3)
        # Weights that are rounded to 1 / 4096 decide a few near ties otherwise.
        assert np.abs(counts - expected).sum() <= 0.005 * len(inside)


def test_brightness_contrast_and_rotation_do_not_matter():
    images = rng.integers(0, 60, (9, 12, 12), np.uint8)
    family = LocalBinaryPatterns(grid=1).fit(images)
    features = family.transform(images)
    assert_array_equal(family.transform(images * 4 + 9), features)
    assert_array_equal(family.transform(np.rot90(images, axes=(1, 2))), features)
    one_each = LocalBinaryPatterns("uniform", grid=1).fit(images)
    rotated = one_each.transform(np.rot90(images, axes=(1, 2)))
    assert not np.array_equal(rotated, one_each.transform(images))


def test_only_cells_in_use_cost():
    family = LocalBinaryPatterns(radius=1, points=4, grid=3).fit(np.zeros((1, 8, 8)))
    assert family.macs() == 6 * 6 * 4
    assert family.macs([0, 1, 5]) == family.take([0, 1, 5]).macs() == 2 * 2 * 4
    assert family.added_macs([0], [1, 6]).tolist() == [0, 16]
    assert len(LocalBinaryPatterns(radius=1, points=8).circle.weights) == 4 + 4 * 4
    assert family.describe(6)["cell"] == (1, 3, 3, 5)
    assert family.describe(5)["code"] is None


def test_textures_are_told_apart(tmp_path):
    smooth = rng.normal(size=(120, 18, 18))
    rough = np.sign(smooth)
    smooth = smooth + np.roll(smooth, 1, axis=2) + np.roll(smooth, 1, axis=1)
    images = np.concatenate([smooth, rough]).astype(np.float32)
    y = np.repeat([0, 1], 120)
    family = LocalBinaryPatterns(grid=1).fit(images)
    model = ShareBoost(rounds=3).fit(ArrayColumns.from_family(family, images[::2]), y[::2])
    compact = model.to_classifier(family)
    assert (compact.predict(images[1::2]) == y[1::2]).mean() > 0.95
    compact.save(tmp_path / "c.safetensors")
    again = load(tmp_path / "c.safetensors")
    assert_array_equal(again.decision_function(images), compact.decision_function(images))


@pytest.mark.parametrize(
    "parameters",
    [
        {"codes": "all"}, {"radius": 0}, {"radius": float("nan")}, {"radius": 65}, {"radius": "1"},
        {"points": 3}, {"points": 17}, {"points": 8.0}, {"grid": 0}, {"grid": True},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(InputError, match=rf"^{next(iter(parameters))}: got"):
        LocalBinaryPatterns(**parameters).fit(IMAGES["gray"])


def test_images_that_are_too_small_are_refused():
    for images in (np.zeros((2, 40)), np.zeros((2, 3, 9))):
        with pytest.raises(InputError, match=r"^images: got"):
            LocalBinaryPatterns().fit(images)


@pytest.mark.parametrize("change", [{"ids": [99]}, {"ids": [-1]}, {"image_shape": [2, 9]}])
def test_foreign_states_are_refused(change):
    state, arrays = LocalBinaryPatterns().fit(IMAGES["gray"]).to_state()
    for key, value in change.items():
        if key in arrays:
            arrays[key] = np.array(value)
        else:
            state[key] = value
    with pytest.raises(InputError):
        family_from_state(state, arrays)
