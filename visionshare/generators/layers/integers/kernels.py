"""Kernels of layers of integers, for one image of bytes in floats.

Layers whose sums floats hold exactly are computed by the kernels of floats, and rounded here. The
bits are the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed

__all__ = ["cells_forward", "rounding_forward", "slant_forward", "sums_forward"]

# Where each number is in the header of a layer of templates.
HEIGHT, WIDTH, CHANNELS, N, SIZE, PAD_Y, PAD_X, ROWS, COLUMNS, CELLS, ACROSS, KIND = range(12)
HEADER = 12
#: Kinds: templates see all channels, or one each; residual ones are added to the input.
PLAIN, DEPTHWISE, RESIDUAL = range(3)
# Bits behind the point: of a slant, and of a row or a column.
SLANT_BITS = 12
PIXEL_BITS = 8
# A sum in one of the signed bytes that are squared, and the shift of its square.
_LARGEST_ROOT = 127
_SQUARE_SHIFT = 6


@njit(cache=True, nogil=True)
def _rounded(total: int, shift: int) -> int:
    """Return a sum divided by 2^shift, to the nearest, halves up."""
    if shift > 0:
        return (total + (1 << (shift - 1))) >> shift
    return total


@njit(cache=True, nogil=True)
def rounding_forward(x: np.ndarray, ints: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write sums, whole numbers that floats hold exactly, as bytes: shifted and cut off."""
    # Integers: how many sums have shifts of their own, and whether they are squared. Weights: what
    # is added before a shift, and what it multiplies with.
    x = borrowed(x)
    weights = borrowed(weights)
    out = borrowed(out)
    n = ints[0]
    halves = weights[:n]
    factors = weights[n:]
    for first in range(0, x.shape[0], n):
        for t in range(n):
            value = np.floor((x[first + t] + halves[t]) * factors[t])
            if ints[1]:
                root = min(max(value, np.float32(-_LARGEST_ROOT)), np.float32(_LARGEST_ROOT))
                value = np.floor((root * root + np.float32(32)) * np.float32(1 / 64))
            out[first + t] = min(value, np.float32(255))


@njit(cache=True, nogil=True)
def cells_forward(
    x: np.ndarray, ints: np.ndarray, weights: np.ndarray, work: np.ndarray, out: np.ndarray
) -> None:
    """Write the maxima of responses in cells, rectified, shifted and cut off."""
    # After the header: the cells of rows and of columns, shifts, sources and lifts. Weights are
    # biases, then taps; the templates of a tap lie side by side.
    x = borrowed(x)
    ints = borrowed(ints)
    weights = borrowed(weights)
    work = borrowed(work)
    out = borrowed(out)
    n = ints[N]
    rows = ints[ROWS]
    columns = ints[COLUMNS]
    n_cells = ints[CELLS]
    row_cells = ints[HEADER : HEADER + rows]
    col_cells = ints[HEADER + rows : HEADER + rows + columns]
    tables = ints[HEADER + rows + columns :]
    shifts = tables[:n]
    sources = tables[n : 2 * n]
    lifts = tables[2 * n :]
    sums = work[:n]
    best = work[n : n + n_cells * n]
    best[:] = 0
    for y in range(rows):
        for c in range(columns):
            if row_cells[y] < 0 or col_cells[c] < 0:
                continue
            for t in range(n):
                sums[t] = weights[t]
            _add_patch(x, ints, weights[n:], sources, y - ints[PAD_Y], c - ints[PAD_X], sums)
            cell = row_cells[y] * ints[ACROSS] + col_cells[c]
            largest = best[cell * n : (cell + 1) * n]
            for t in range(n):
                largest[t] = max(largest[t], sums[t])
            if ints[KIND] == RESIDUAL:
                middle = ints[SIZE] // 2
                line = (y - ints[PAD_Y] + middle) * ints[WIDTH]
                pixel = (line + c - ints[PAD_X] + middle) * ints[CHANNELS]
                for t in range(n):
                    largest[t] += np.int32(x[pixel + sources[t]]) << lifts[t]
    for cell in range(n_cells):
        for t in range(n):
            value = _rounded(np.int64(best[cell * n + t]), shifts[t])
            out[cell * n + t] = min(value, 255)


@njit(cache=True, nogil=True)
def _add_patch(
    x: np.ndarray,
    ints: np.ndarray,
    taps: np.ndarray,
    sources: np.ndarray,
    top: int,
    left: int,
    sums: np.ndarray,
) -> None:
    """Add the products of a patch, as far as it lies in the image."""
    x = borrowed(x)
    ints = borrowed(ints)
    taps = borrowed(taps)
    sources = borrowed(sources)
    sums = borrowed(sums)
    q = ints[SIZE]
    channels = ints[CHANNELS]
    n = sums.shape[0]
    for dy in range(max(0, -top), min(q, ints[HEIGHT] - top)):
        for dx in range(max(0, -left), min(q, ints[WIDTH] - left)):
            pixel = ((top + dy) * ints[WIDTH] + left + dx) * channels
            tap = dy * q + dx
            if ints[KIND] == DEPTHWISE:
                line = taps[tap * n : (tap + 1) * n]
                for t in range(n):
                    sums[t] += np.int32(x[pixel + sources[t]]) * line[t]
                continue
            for c in range(channels):
                value = np.int32(x[pixel + c])
                # Many maxima are 0.
                if value:
                    begin = (tap * channels + c) * n
                    line = taps[begin : begin + n]
                    for t in range(n):
                        sums[t] += value * line[t]


@njit(cache=True, nogil=True)
def sums_forward(
    x: np.ndarray, ints: np.ndarray, weights: np.ndarray, work: np.ndarray, out: np.ndarray
) -> None:
    """Write units: weighted sums of all values, rectified or squared, shifted and cut off."""
    # Integers: inputs, units, whether they are squares, shifts. Weights: biases, then inputs.
    x = borrowed(x)
    ints = borrowed(ints)
    weights = borrowed(weights)
    work = borrowed(work)
    n_inputs = ints[0]
    n = ints[1]
    square = ints[2]
    sums = work[:n]
    for t in range(n):
        sums[t] = weights[t]
    for j in range(n_inputs):
        value = np.int32(x[j])
        if value:
            line = weights[(j + 1) * n : (j + 2) * n]
            for t in range(n):
                sums[t] += value * line[t]
    for t in range(n):
        total = np.int64(sums[t])
        if square:
            # The sign goes with the square; sizes are rounded alike.
            root = min(max(_rounded(total, ints[3 + t]), -_LARGEST_ROOT), _LARGEST_ROOT)
            out[t] = min(_rounded(root * root, _SQUARE_SHIFT), 255)
        else:
            out[t] = min(_rounded(max(total, np.int64(0)), ints[3 + t]), 255)


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


@njit(cache=True, nogil=True)
def slant_forward(x: np.ndarray, ints: np.ndarray, out: np.ndarray) -> None:
    """Write an image whose rows are moved so that the slant goes; what comes in is 0."""
    x = borrowed(x)
    out = borrowed(out)
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
