"""Templates in integers, for one image of bytes in floats."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.integers.kernels import rounded
from visionshare.generators.layers.steps import kernel

# Where each number is in the header.
HEIGHT, WIDTH, CHANNELS, N, SIZE, PAD_Y, PAD_X, ROWS, COLUMNS, CELLS, ACROSS, KIND = range(12)
HEADER = 12
#: Kinds: templates see all channels, or one each; residual ones are added to the input; means
#: see one channel each, and sums of a cell are added.
PLAIN, DEPTHWISE, RESIDUAL, MEANS = range(4)


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
    x = uncounted(x)
    ints = uncounted(ints)
    taps = uncounted(taps)
    sources = uncounted(sources)
    sums = uncounted(sums)
    q = ints[SIZE]
    channels = ints[CHANNELS]
    n = sums.shape[0]
    for dy in range(max(0, -top), min(q, ints[HEIGHT] - top)):
        for dx in range(max(0, -left), min(q, ints[WIDTH] - left)):
            pixel = ((top + dy) * ints[WIDTH] + left + dx) * channels
            tap = dy * q + dx
            if ints[KIND] == DEPTHWISE or ints[KIND] == MEANS:
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
    """Write the maxima of responses in cells, rectified, shifted and cut off."""
    # After the header: the cells of rows and of columns, shifts, sources and lifts. Weights are
    # biases, then taps; the templates of a tap lie side by side.
    taps = uncounted(weights).view(np.int32)
    memory = uncounted(work).view(np.int32)
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
    sums = memory[:n]
    best = memory[n : n + n_cells * n]
    best[:] = 0
    for y in range(rows):
        for c in range(columns):
            if row_cells[y] < 0 or col_cells[c] < 0:
                continue
            for t in range(n):
                sums[t] = taps[t]
            _add_patch(x, ints, taps[n:], sources, y - ints[PAD_Y], c - ints[PAD_X], sums)
            cell = row_cells[y] * ints[ACROSS] + col_cells[c]
            largest = best[cell * n : (cell + 1) * n]
            for t in range(n):
                added = largest[t] if ints[KIND] == MEANS else 0
                largest[t] = max(largest[t], sums[t] + added)
            if ints[KIND] == RESIDUAL:
                middle = ints[SIZE] // 2
                line = (y - ints[PAD_Y] + middle) * ints[WIDTH]
                pixel = (line + c - ints[PAD_X] + middle) * ints[CHANNELS]
                for t in range(n):
                    largest[t] += np.int32(x[pixel + sources[t]]) << lifts[t]
    for cell in range(n_cells):
        for t in range(n):
            value = rounded(np.int64(best[cell * n + t]), shifts[t])
            out[cell * n + t] = min(value, 255)
