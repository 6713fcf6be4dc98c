"""Features of images whose slant was taken out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from visionshare import PatchTemplates, Pixels
from visionshare.errors import InputError
from visionshare.generators.deslanted.family import Deslanted, deslanted


def _slant(image):
    w = np.maximum(image.astype(float), 0)
    y, x = np.indices(w.shape)
    y, x = y - (w * y).sum() / w.sum(), x - (w * x).sum() / w.sum()
    return (w * x * y).sum() / (w * y * y).sum(), (w * np.indices(w.shape)[0]).sum() / w.sum()


def _brute(image):
    slope, middle = _slant(image)
    slope = min(max(slope, -1), 1)
    x = np.arange(-200, 200 + image.shape[1])
    rows = []
    for y, row in enumerate(image.astype(float)):
        wide = np.pad(row, 200)
        rows.append(np.interp(np.arange(image.shape[1]) + slope * (y - middle), x, wide))
    return np.array(rows)


@pytest.fixture(scope="module")
def digits():
    return (load_digits().images[:300] * 15).astype(np.uint8)


def test_rows_move_by_the_slope_of_their_means(digits):
    result = deslanted(digits)
    expected = np.array([_brute(image) for image in digits])
    assert result.dtype == np.uint8
    assert np.abs(result - expected).max() <= 0.5 + 1e-4
    floats = deslanted(digits / 255)
    assert floats.dtype == np.float32
    assert_allclose(floats, expected / 255, atol=1e-6)
    assert_array_equal(deslanted(digits[..., None])[..., 0], result)
    assert_array_equal(deslanted(digits, n_jobs=2), result)
    assert_array_equal(np.concatenate([deslanted(part) for part in np.split(digits, 30)]), result)


def test_what_leans_stands():
    rng = np.random.default_rng(0)
    y, x = np.indices((28, 28)) - 13.5
    for slope in rng.uniform(-0.6, 0.6, 9):
        leaning = (200 * np.exp(-np.square((x - slope * y) / 2) - np.square(y / 8))).astype(
            np.uint8
        )
        assert abs(_slant(leaning)[0] - slope) < 0.05
        assert abs(_slant(deslanted(leaning[None])[0])[0]) < 0.02


@pytest.mark.parametrize("value", [0, 7])
def test_what_has_no_slant_stays(value):
    flat = np.full((2, 5, 4), value, np.uint8)
    assert_array_equal(deslanted(flat), flat)
    row = np.zeros((1, 5, 4), np.float32)
    row[0, 3, 1:3] = 0.3
    assert_array_equal(deslanted(row), row)
    assert_array_equal(deslanted(-row), -row)


def test_features_are_those_of_deslanted_images(digits):
    straight = deslanted(digits)
    for part in (Pixels(), PatchTemplates(3, 10, grid=2, widths=(2.0,), n_patches=500)):
        family = Deslanted(part).fit(digits)
        alone = part.fit(straight)
        assert_array_equal(family.transform(digits), alone.transform(straight))
        assert_array_equal(family.transform_columns(digits), alone.transform_columns(straight))
        ids = np.array([3, 0, 7])
        taken = family.take(ids)
        assert_array_equal(taken.transform(digits), alone.take(ids).transform(straight))
        assert family.macs(ids) == alone.macs(ids) + 4 * 64
        assert family.macs(np.empty(0, int)) == 0
        for chosen in (np.empty(0, int), ids):
            added = [family.macs(np.append(chosen, f)) - family.macs(chosen) for f in (1, 2)]
            assert_array_equal(family.added_macs(chosen, np.array([1, 2])), added)
        again = Deslanted.from_state(*taken.to_state())
        assert_array_equal(again.transform(digits), taken.transform(digits))
        weights = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
        expected = taken.transform(digits) @ weights.T
        assert_allclose(taken.weighted_sums(digits, weights), expected, rtol=1e-4, atol=1e-4)


def test_bad_input_is_refused(digits):
    for wrong in (None, Pixels, 3):
        with pytest.raises(InputError, match=r"^family: got"):
            Deslanted(wrong).fit(digits)
    with pytest.raises(InputError, match=r"^images: got"):
        Deslanted(Pixels()).fit(digits.reshape(300, -1))
    family = Deslanted(Pixels()).fit(digits)
    with pytest.raises(InputError, match=r"^images: got"):
        family.transform(digits[:, 1:])
    state, arrays = family.to_state()
    with pytest.raises(InputError, match=r"^parts: got"):
        Deslanted.from_state({**state, "parts": []}, arrays)
