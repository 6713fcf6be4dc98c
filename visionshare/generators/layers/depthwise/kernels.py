"""Responses of templates of one channel, maximum per cell: forward, and both gradients."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.steps import kernel

# Where each number is in the header of the table of integers; the cells of rows and of columns
# follow, then the channel of each template.
HEIGHT, WIDTH, CHANNELS, PAD_Y, PAD_X, N, SIZE, ROWS, COLUMNS, ACROSS = range(10)
HEADER = 10


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
    """Write the maximum with 0 of each template's responses in each cell of one image."""
    # `weights` are biases, then taps, all templates side by side; `places` (int32) are positions,
    # row · columns + column, or −1 where a maximum is 0; not written when empty.
    weights = uncounted(weights)
    work = uncounted(work)
    n = ints[N]
    q = ints[SIZE]
    rows = ints[ROWS]
    columns = ints[COLUMNS]
    row_cells = ints[HEADER : HEADER + rows]
    col_cells = ints[HEADER + rows : HEADER + rows + columns]
    sources = ints[HEADER + rows + columns :]
    line = (ints[WIDTH] + 2 * ints[PAD_X]) * n
    sums = work[:n]
    canvas = work[n : n + (ints[HEIGHT] + 2 * ints[PAD_Y]) * line]
    canvas[:] = np.float32(0)
    # 1) the channel of each template, with zeros around it
    for y in range(ints[HEIGHT]):
        for c in range(ints[WIDTH]):
            pixel = (y * ints[WIDTH] + c) * ints[CHANNELS]
            to = (y + ints[PAD_Y]) * line + (c + ints[PAD_X]) * n
            for t in range(n):
                canvas[to + t] = x[pixel + sources[t]] * unit
    out[:] = np.float32(0)
    places[:] = -1
    for y in range(rows):
        for c in range(columns):
            if row_cells[y] < 0 or col_cells[c] < 0:
                continue
            # 2) the responses at a position
            for t in range(n):
                sums[t] = weights[t]
            for dy in range(q):
                for dx in range(q):
                    taps = weights[(dy * q + dx + 1) * n : (dy * q + dx + 2) * n]
                    start = (y + dy) * line + (c + dx) * n
                    pixels = canvas[start : start + n]
                    for t in range(n):
                        sums[t] += taps[t] * pixels[t]
            # 3) the maxima of its cell
            begin = (row_cells[y] * ints[ACROSS] + col_cells[c]) * n
            for t in range(n):
                if sums[t] > out[begin + t]:
                    out[begin + t] = sums[t]
                    if places.shape[0] > 0:
                        places[begin + t] = y * columns + c


@njit(cache=True, nogil=True)
def depthwise_backward(
    images: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    taps: np.ndarray,
    places: np.ndarray,
    G: np.ndarray,
    of_taps: np.ndarray,
    of_biases: np.ndarray,
    of_images: np.ndarray,
) -> None:
    """Add the gradients of Σ G · maxima in taps and biases, and in images unless that is empty."""
    # Images are (n, H, W, C), taps (n_templates, q, q), places and G (n, n_cells, n_templates).
    n, n_cells, n_templates = places.shape
    q = taps.shape[1]
    height, width = images.shape[1:3]
    columns = ints[COLUMNS]
    sources = ints[HEADER + ints[ROWS] + columns :]
    below = of_images.shape[0] > 0
    for i in range(n):
        for cell in range(n_cells):
            for t in range(n_templates):
                place = places[i, cell, t]
                if place < 0:
                    continue
                slope = G[i, cell, t]
                of_biases[t] += slope
                top = place // columns - ints[PAD_Y]
                left = place % columns - ints[PAD_X]
                for dy in range(max(0, -top), min(q, height - top)):
                    for dx in range(max(0, -left), min(q, width - left)):
                        value = np.float32(images[i, top + dy, left + dx, sources[t]]) * unit
                        of_taps[t, dy, dx] += slope * value
                        if below:
                            of_images[i, top + dy, left + dx, sources[t]] += slope * taps[t, dy, dx]
