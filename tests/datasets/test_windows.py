"""What windows of photographs show: parts of them, and things a little off."""

import numpy as np
import pytest

from visionshare.datasets.augmentation.windows import off_center, prepared, random_windows
from visionshare.datasets.preprocessing import Preprocessing


@pytest.mark.parametrize("colors", [(), (3,)])
@pytest.mark.parametrize("side", [5, 90])
def test_parts_have_the_shape_of_a_window_and_the_values_of_the_photograph(side, colors):
    photograph = np.random.default_rng(0).integers(100, 120, (side, side + 7, *colors), np.uint8)
    made = random_windows([photograph], 4, (12, 8, *colors), seed=1)
    assert made.shape == (4, 12, 8, *colors)
    assert made.min() >= 100
    assert made.max() < 120


def test_things_stay_in_the_middle_with_the_photograph_around():
    images = np.full((30, 20, 20), 200, np.uint8)
    seen = off_center(images, [np.full((60, 60), 50, np.uint8)])
    assert (seen[:, 5:15, 5:15] == 200).all()
    assert 50 in seen[:, [0, -1]]
    assert len(np.unique(seen.mean(axis=(1, 2)))) > 20


def test_windows_are_prepared_as_crops_are():
    windows = np.random.default_rng(0).integers(0, 256, (2, 9, 9), np.uint8)
    assert prepared(windows, Preprocessing()) is windows
    inverted = prepared(windows, Preprocessing(polarity="dark_on_light"))
    np.testing.assert_array_equal(inverted, 255 - windows)
