"""Responses of templates of one channel, maximum per cell: forward, and both gradients."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed

__all__ = ["depthwise_backward", "depthwise_forward"]

# Where each number is in the header of the table of integers.
HEIGHT, WIDTH, CHANNELS, PAD_Y, PAD_X, N, SIZE, ROWS, COLUMNS, CELL_COLUMNS = range(10)
HEADER = 10


@njit(cache=True, nogil=True)
def depthwise_forward(
    x: np.ndarray, unit: np.float32, ints: np.ndarray, floats: np.ndarray, work: np.ndarray,
    out: np.ndarray, places: np.ndarray,
) -> None:  # fmt: skip
    """Write the maximum with 0 of each template's responses in each cell."""
    x, ints, floats, work = borrowed(x), borrowed(ints), borrowed(floats), borrowed(work)
    out, places = borrowed(out), borrowed(places)
    height, width, channels, n = ints[HEIGHT], ints[WIDTH], ints[CHANNELS], ints[N]
    q, rows, columns = ints[SIZE], ints[ROWS], ints[COLUMNS]
    pad_y, pad_x, across = ints[PAD_Y], ints[PAD_X], ints[CELL_COLUMNS]
    row_cells = ints[HEADER : HEADER + rows]
    col_cells = ints[HEADER + rows : HEADER + rows + columns]
    sources = ints[HEADER + rows + columns :]
    line = width + 2 * pad_x
    plane, sums = work[: line * (height + 2 * pad_y)], work[line * (height + 2 * pad_y) :]
    with_places = places.shape[0] > 0
    for j in range(out.shape[0]):
        out[j] = np.float32(0)
    if with_places:
        for j in range(places.shape[0]):
            places[j] = -1
    drawn = -1
    for t in range(n):
        if sources[t] != drawn:
            drawn = sources[t]
            for y in range(height):
                begin = (y + pad_y) * line + pad_x
                for c in range(width):
                    plane[begin + c] = x[(y * width + c) * channels + drawn] * unit
        taps = floats[n + t * q * q : n + (t + 1) * q * q]
        for y in range(rows):
            if row_cells[y] < 0:
                continue
            # 1) the responses of a row, tap after tap
            for c in range(columns):
                sums[c] = floats[t]
            for dy in range(q):
                for dx in range(q):
                    tap, begin = taps[dy * q + dx], (y + dy) * line + dx
                    for c in range(columns):
                        sums[c] += tap * plane[begin + c]
            # 2) the maxima of its cells
            for c in range(columns):
                if col_cells[c] < 0:
                    continue
                to = (row_cells[y] * across + col_cells[c]) * n + t
                if sums[c] > out[to]:
                    out[to] = sums[c]
                    if with_places:
                        places[to] = y * columns + c


@njit(cache=True, nogil=True)
def depthwise_backward(
    images: np.ndarray, unit: np.float32, ints: np.ndarray, taps: np.ndarray, places: np.ndarray,
    G: np.ndarray, of_taps: np.ndarray, of_biases: np.ndarray, of_images: np.ndarray,
) -> None:  # fmt: skip
    """Add the gradients in taps and biases of Σ G · maxima, and write those in the images."""
    # images: (n, H, W, C), uint8 or float32
    # taps: (n_templates, q, q), float32
    # places, G: (n, n_cells, n_templates)
    # of_taps: (n_templates, q, q), float32
    # of_biases: (n_templates,), float32
    # of_images: (n, H, W, C), float32, zeros; or (0, 0, 0, 0)
    (n, n_cells, n_templates), q = places.shape, taps.shape[1]
    height, width = images.shape[1], images.shape[2]
    columns, pad_y, pad_x = ints[COLUMNS], ints[PAD_Y], ints[PAD_X]
    sources = ints[HEADER + ints[ROWS] + columns :]
    below = of_images.shape[0] > 0
    for i in range(n):
        for cell in range(n_cells):
            for t in range(n_templates):
                place, slope = places[i, cell, t], G[i, cell, t]
                if place < 0:
                    continue
                of_biases[t] += slope
                top, left = place // columns - pad_y, place % columns - pad_x
                for dy in range(max(0, -top), min(q, height - top)):
                    for dx in range(max(0, -left), min(q, width - left)):
                        y, c = top + dy, left + dx
                        value = np.float32(images[i, y, c, sources[t]]) * unit
                        of_taps[t, dy, dx] += slope * value
                        if below:
                            of_images[i, y, c, sources[t]] += slope * taps[t, dy, dx]
