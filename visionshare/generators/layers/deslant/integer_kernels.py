"""Deslanting in fixed point, for one image of bytes in floats."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.layers.steps import kernel

# Bits behind the point: of a slant, and of a row or a column.
SLANT_BITS = 12
PIXEL_BITS = 8


@njit(cache=True, nogil=True)
def _quotient(dividend: int, divisor: int, bits: int) -> int:
    """Return ⌊dividend · 2^bits / divisor⌋, bit by bit, for a dividend below the divisor."""
    quotient = 0
    for _ in range(bits):
        dividend *= 2
        quotient *= 2
        if dividend >= divisor:
            dividend -= divisor
            quotient += 1
    return quotient


@njit(cache=True, nogil=True)
def _slant(image: np.ndarray) -> tuple[int, int]:
    """Return the slant of an image, and the row of its center of mass, in fixed point."""
    rows, columns, channels = image.shape
    mass = first = second = across = both = np.int64(0)
    for y in range(rows):
        row = moment = np.int64(0)
        for x in range(columns):
            w = np.int64(0)
            for c in range(channels):
                w += np.int64(image[y, x, c])
            row += w
            moment += w * x
        mass += row
        first += row * y
        second += row * y * y
        across += moment
        both += moment * y
    spread = second * mass - first * first
    if spread == 0:
        return 0, 0
    lean = both * mass - across * first
    size = abs(lean)
    slant = 1 << SLANT_BITS if size >= spread else _quotient(size, spread, SLANT_BITS)
    whole = first // mass
    middle = (whole << PIXEL_BITS) + _quotient(first - whole * mass, mass, PIXEL_BITS)
    return (slant if lean > 0 else -slant), middle


@kernel
def forward(
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    weights: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write an image whose rows are moved so that the slant goes; what comes in is 0."""
    rows = ints[0]
    columns = ints[1]
    channels = ints[2]
    image = x.reshape((rows, columns, channels))
    moved = out.reshape((rows, columns, channels))
    one = 1 << PIXEL_BITS
    slant, middle = _slant(image)
    for y in range(rows):
        move = (slant * ((y << PIXEL_BITS) - middle)) >> SLANT_BITS
        start = move >> PIXEL_BITS
        right = move & (one - 1)
        for column in range(columns):
            a = column + start
            b = a + 1
            for c in range(channels):
                total = one // 2
                if 0 <= a < columns:
                    total += (one - right) * np.int64(image[y, a, c])
                if 0 <= b < columns:
                    total += right * np.int64(image[y, b, c])
                moved[y, column, c] = total >> PIXEL_BITS
