"""Kernels on label images: where each object lies, and its pixels alone."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def object_boxes(numbers: np.ndarray) -> np.ndarray:
    """Return the box of each number: first row, first column, last row and column (exclusive)."""
    # The box of a number that no pixel has is empty: all zeros.
    # numbers: (H, W), whole numbers from 0
    # boxes: (largest number + 1, 4), int64
    height, width = numbers.shape
    boxes = np.zeros((int(numbers.max()) + 1, 4), np.int64)
    for y in range(height):
        start = 0
        while start < width:
            # A run of pixels of one number changes its box once.
            number = int(numbers[y, start])
            end = start + 1
            while end < width and numbers[y, end] == numbers[y, start]:
                end += 1
            if number > 0:
                box = boxes[number]
                if box[3] == 0:
                    box[0] = y
                    box[1] = start
                box[1] = min(box[1], start)
                box[2] = y + 1
                box[3] = max(box[3], end)
            start = end
    return boxes


@njit(cache=True, nogil=True)
def object_alone(pixels: np.ndarray, numbers: np.ndarray, number: int) -> np.ndarray:
    """Return a block of an image where only pixels with one number are kept, the others black."""
    # pixels: (H, W) or (H, W, 3), uint8
    # numbers: (H, W), whole numbers
    alone = np.zeros(pixels.shape, np.uint8)
    for y in range(numbers.shape[0]):
        for x in range(numbers.shape[1]):
            if numbers[y, x] == number:
                alone[y, x] = pixels[y, x]
    return alone
