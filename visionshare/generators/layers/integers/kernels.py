"""Kernels of layers of whole numbers: the same bits on every machine."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["cells_of_block", "deslanted_block", "units_of_block"]

# Bits behind the point: of a slant, and of a row or a column.
SLANT_BITS, PIXEL_BITS = 12, 8
# A sum in one of the signed bytes that are squared, and the shift of its square.
_LARGEST_ROOT, _SQUARE_SHIFT = 127, 6


@njit(cache=True, nogil=True)
def _byte(total: int, shift: int) -> int:
    """Return a sum of at least 0 after its shift, as a byte."""
    if shift > 0:
        total = (total + (1 << (shift - 1))) >> shift
    return min(total, 255)


@njit(cache=True, nogil=True)
def _quotient(dividend: int, divisor: int, bits: int) -> int:
    """Return ⌊dividend · 2^bits / divisor⌋, bit by bit, for a dividend below the divisor."""
    quotient = 0
    for _ in range(bits):
        dividend, quotient = 2 * dividend, 2 * quotient
        if dividend >= divisor:
            dividend -= divisor
            quotient += 1
    return quotient


@njit(cache=True, nogil=True)
def _slant(image: np.ndarray) -> tuple[int, int]:
    """Return the slant of an image, and the row of its center of mass, in fixed point."""
    rows, cols, channels = image.shape
    mass = first = second = across = both = np.int64(0)
    for y in range(rows):
        row = moment = np.int64(0)
        for x in range(cols):
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


@njit(cache=True, nogil=True)
def deslanted_block(images: np.ndarray, out: np.ndarray) -> None:
    """Write images whose rows are moved so that the slant goes; what comes in is 0."""
    # images, out: (n, H, W, C), uint8
    n, rows, cols, channels = images.shape
    one = 1 << PIXEL_BITS
    for i in range(n):
        slant, middle = _slant(images[i])
        for y in range(rows):
            move = (slant * ((y << PIXEL_BITS) - middle)) >> SLANT_BITS
            start, right = move >> PIXEL_BITS, move & (one - 1)
            for x in range(cols):
                a, b = x + start, x + start + 1
                for c in range(channels):
                    total = one // 2
                    if 0 <= a < cols:
                        total += (one - right) * np.int64(images[i, y, a, c])
                    if 0 <= b < cols:
                        total += right * np.int64(images[i, y, b, c])
                    out[i, y, x, c] = total >> PIXEL_BITS


@njit(cache=True, nogil=True)
def _add_rows(image: np.ndarray, taps: np.ndarray, y: int, first: int, sums: np.ndarray) -> None:
    """Add the products of a patch, whose first row and first value are given, to sums."""
    size, length, n = taps.shape
    for dy in range(size):
        row = y + dy
        if not 0 <= row < image.shape[0]:
            continue
        for t in range(length):
            place = first + t
            if not 0 <= place < image.shape[1]:
                continue
            value = np.int32(image[row, place])
            if value:
                line = taps[dy, t]
                for m in range(n):
                    sums[m] += value * line[m]


@njit(cache=True, nogil=True)
def cells_of_block(
    images: np.ndarray, taps: np.ndarray, biases: np.ndarray, shifts: np.ndarray,
    pads: tuple[int, int], row_cells: np.ndarray, col_cells: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Write the maxima of responses in cells, rectified, shifted and cut off."""
    # images: (n, H, W · C), uint8
    # taps: (q, q · C, n_templates), int32
    # biases, shifts: (n_templates,), int32
    # out: (n, cell rows, cell columns, n_templates), uint8
    n, cells_down, cells_across, n_templates = out.shape
    channels = taps.shape[1] // taps.shape[0]
    sums = np.empty(n_templates, np.int32)
    best = np.empty((cells_down, cells_across, n_templates), np.int32)
    for i in range(n):
        best[:] = 0
        for y in range(len(row_cells)):
            for x in range(len(col_cells)):
                if row_cells[y] < 0 or col_cells[x] < 0:
                    continue
                sums[:] = biases
                _add_rows(images[i], taps, y - pads[0], x * channels - pads[1], sums)
                largest = best[row_cells[y], col_cells[x]]
                for m in range(n_templates):
                    largest[m] = max(largest[m], sums[m])
        for r in range(cells_down):
            for c in range(cells_across):
                for m in range(n_templates):
                    out[i, r, c, m] = _byte(best[r, c, m], shifts[m])


@njit(cache=True, nogil=True)
def units_of_block(
    inputs: np.ndarray, weights: np.ndarray, biases: np.ndarray, shifts: np.ndarray,
    square: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Write units of bytes: weighted sums, rectified or squared, shifted and cut off."""
    # inputs: (n, p), uint8
    # weights: (p, n_units), int32
    # biases, shifts: (n_units,), int32
    # out: (n, n_units), uint8
    n_units = out.shape[1]
    sums = np.empty(n_units, np.int32)
    for i in range(len(inputs)):
        sums[:] = biases
        for j in range(inputs.shape[1]):
            value = np.int32(inputs[i, j])
            if value:
                line = weights[j]
                for m in range(n_units):
                    sums[m] += value * line[m]
        for m in range(n_units):
            total = np.int64(sums[m])
            if square:
                # The sign goes with the square; sizes are rounded alike.
                total = np.int64(sums[m])
                shift = np.int64(shifts[m])
                if shift > 0:
                    total = (total + (np.int64(1) << (shift - 1))) >> shift
                total = min(max(total, -_LARGEST_ROOT), _LARGEST_ROOT)
                out[i, m] = _byte(total * total, _SQUARE_SHIFT)
            else:
                out[i, m] = _byte(max(total, np.int64(0)), shifts[m])
