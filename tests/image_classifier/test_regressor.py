"""ImageRegressor: values of images, from fit to files."""

import numpy as np
import pytest
from sklearn.base import clone

from visionshare import ImageClassifier, ImageRegressor, load
from visionshare.errors import InputError


def _hands(n, seed, side=16):
    """Return images of hands that turn clockwise from above, and their angles."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 360, n)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    turned = np.deg2rad(angles)[:, None, None]
    along = x * np.sin(turned) - y * np.cos(turned)
    across = x * np.cos(turned) + y * np.sin(turned)
    drawn = np.clip(1.5 - np.abs(across), 0, 1) * (along > 0) * (along < side / 2.2)
    return (drawn * 200 + rng.integers(0, 30, drawn.shape)).astype(np.uint8), angles


IMAGES, ANGLES = _hands(240, 0)
OTHERS, TRUTH = _hands(100, 1)


@pytest.fixture(scope="module")
def fitted():
    model = ImageRegressor(period=360, budget=60_000, time=6, augment=False, n_jobs=1)
    return model.fit(IMAGES, ANGLES + 720)


def test_angles_are_found_around_the_period(fitted):
    said = fitted.predict(OTHERS)
    assert ((said >= 0) & (said < 360)).all()
    errors = np.abs((said - TRUTH + 180) % 360 - 180)
    assert errors.mean() < 15
    assert fitted.validation_error_ < 0.3
    assert fitted.cost_["macs"] <= 60_000
    assert fitted.classifier_.score(OTHERS, TRUTH) > 0.8


def test_a_file_says_the_same_values(fitted, tmp_path):
    fitted.save(tmp_path / "hands.safetensors")
    said = fitted.predict(OTHERS)
    again = ImageRegressor.load(tmp_path / "hands.safetensors")
    assert again.period == 360
    np.testing.assert_array_equal(again.predict(OTHERS), said)
    np.testing.assert_array_equal(load(tmp_path / "hands.safetensors").predict(OTHERS), said)


def test_a_file_of_classes_says_no_values(tmp_path):
    model = ImageClassifier("pixels", n_jobs=1).fit(IMAGES[:60], ANGLES[:60] > 180)
    model.save(tmp_path / "sides.safetensors")
    with pytest.raises(InputError, match="a file of values"):
        ImageRegressor.load(tmp_path / "sides.safetensors")


def test_a_pool_says_counts():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, 150)
    images = np.zeros((150, 12, 12), np.uint8)
    for image, n in zip(images, counts, strict=True):
        image.reshape(-1, 2)[::7][:n] = 255
    model = clone(ImageRegressor("pixels", n_jobs=1)).fit(images[:100], counts[:100])
    assert np.abs(model.predict(images[100:]) - counts[100:]).mean() < 0.3
    assert model.score(images[100:], counts[100:]) > 0.9


def test_what_is_no_value_is_refused_before_work():
    for y in (["a"] * 240, np.full(240, 2.0), ANGLES[:10], np.full(240, np.nan), None):
        with pytest.raises(InputError, match=r"\by\b"):
            ImageRegressor().fit(IMAGES, y)
    with pytest.raises(InputError, match="period"):
        ImageRegressor(period=0).fit(IMAGES, ANGLES)
