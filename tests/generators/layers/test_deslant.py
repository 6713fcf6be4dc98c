"""Images whose slant was taken out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from visionshare import Deslant, Features, Network, PatchTemplates, Pixels
from visionshare.errors import InputError
from visionshare.generators.layers.deslant import DeslantLayer
from visionshare.generators.layers.forward import Forward


def deslanted(images, n_jobs=1):
    shape = (*images.shape[1:], 1)[:3]
    raster = images.reshape(len(images), *shape)
    if images.dtype != np.uint8:
        raster = raster.astype(np.float32)
    return Forward([DeslantLayer(shape)]).outputs(raster, n_jobs).reshape(images.shape)


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
    # Bytes stay whole numbers.
    assert_array_equal(result, np.floor(result))
    assert np.abs(result - expected).max() <= 0.5 + 1e-4
    assert_allclose(deslanted(digits / 255), expected / 255, atol=1e-6)
    assert_array_equal(deslanted(digits, n_jobs=2), result)
    assert_array_equal(np.concatenate([deslanted(part) for part in np.split(digits, 30)]), result)


def test_what_leans_stands():
    rng = np.random.default_rng(0)
    y, x = np.indices((28, 28)) - 13.5
    for slope in rng.uniform(-0.6, 0.6, 9):
        ink = 200 * np.exp(-np.square((x - slope * y) / 2) - np.square(y / 8))
        leaning = ink.astype(np.uint8)
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
    straight = deslanted(digits).astype(np.uint8)
    for part in (Pixels(), PatchTemplates(3, 10, grid=2, widths=(2.0,), n_patches=500)):
        family = Network([Deslant(), Features(part)]).fit(digits)
        alone = part.fit(straight)
        assert_array_equal(family.transform(digits), alone.transform(straight))
        ids = np.array([3, 0, 7])
        taken = family.take(ids)
        assert_array_equal(taken.transform(digits), alone.take(ids).transform(straight))
        assert family.macs(ids) == alone.macs(ids) + 4 * 64


def test_vectors_have_no_slant(digits):
    with pytest.raises(InputError, match=r"^images: got"):
        Network([Deslant(), Features(Pixels())]).fit(digits.reshape(300, -1))
