"""Kernels on label images against SciPy's ``find_objects`` and NumPy's ``where``."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.ndimage import find_objects

from visionshare.batch.object_kernels import object_alone, object_boxes


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
@pytest.mark.parametrize("n_objects", [0, 1, 5, 200])
def test_boxes_are_those_of_find_objects(dtype, n_objects):
    rng = np.random.default_rng(n_objects)
    blocks = rng.integers(0, n_objects + 1, (12, 9))
    numbers = np.kron(blocks, np.ones((3, 4), int)).astype(dtype)
    boxes = object_boxes(numbers)
    expected = np.zeros_like(boxes)
    for number, found in enumerate(find_objects(numbers.astype(int)), 1):
        if found is not None:
            rows, columns = found
            expected[number] = rows.start, columns.start, rows.stop, columns.stop
    assert boxes.tolist() == expected.tolist()
    assert len(boxes) == numbers.max() + 1


@pytest.mark.parametrize("shape", [(12, 9), (12, 9, 3)])
def test_an_object_alone_is_what_its_mask_selects(shape):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, shape, np.uint8)
    numbers = rng.integers(0, 3, shape[:2], np.uint16)
    selected = (numbers == 2).reshape(12, 9, *[1] * (len(shape) - 2))
    assert_array_equal(object_alone(pixels, numbers, 2), np.where(selected, pixels, 0))
