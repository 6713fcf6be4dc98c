"""Largest responses of few templates: they would not fill a vector, so cells lie in it.

A cell has two rows and two columns of positions. Even and odd columns of each channel are planes
of their own, so that the same position of neighboring cells is a vector. A sum adds the same
products in the same order as where templates lie side by side: it has the same bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.emitter import LANES, uncounted
from visionshare.generators.layers.templates.few_steps import (
    CELLS_TOGETHER,
    FEW_TOGETHER,
    largest_in_cells,
    split_columns,
)
from visionshare.generators.layers.templates.tables import (
    ACROSS,
    CELLS,
    CHANNELS,
    HEIGHT,
    INSIDE,
    LINE,
    ROWS,
    WIDTH,
    N,
)


@njit(cache=True, nogil=True)
def few_maxima(
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    weights: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write the maximum with 0 of each template's responses in each cell of one image."""
    weights = uncounted(weights)
    work = uncounted(work)
    out = uncounted(out)
    places = uncounted(places)
    n = ints[N]
    channels = ints[CHANNELS]
    q = ints[ROWS]
    across = ints[ACROSS]
    line = ints[LINE]
    row = (line // channels + 1) // 2
    plane = (ints[HEIGHT] + 2 * (ints[INSIDE] // line)) * row + LANES
    # Of each channel the even columns, then the odd ones. The last vector reads beyond them.
    end = 2 * channels * plane
    _draw_planes(x, unit, ints, row, plane, work[:end])
    maxima = work[end + LANES :]
    with_places = places.shape[0] > 0
    where = np.empty(FEW_TOGETHER * CELLS_TOGETHER if with_places else 0, np.int32)
    biases = weights[(n + FEW_TOGETHER - 1) // FEW_TOGETHER * FEW_TOGETHER * q * q * channels :]
    for r in range(ints[CELLS] // across):
        for t in range(0, n, FEW_TOGETHER):
            together = min(FEW_TOGETHER, n - t)
            for first in range(0, across, CELLS_TOGETHER):
                # 1) the largest of some templates in a vector of cells
                largest_in_cells(
                    work, 2 * r * row + first, row, plane, q, channels,
                    weights, t * q * q * channels, biases, t,
                    maxima, where, 2 * (r * line + first * channels), line, np.int64(with_places),
                )  # fmt: skip
                # 2) to where all templates of a cell are
                to = (r * across + first) * n + t
                cells = min(CELLS_TOGETHER, across - first)
                _copy(maxima, out, to, cells, together, n)
                if with_places:
                    _copy(where, places, to, cells, together, n)


@njit(cache=True, nogil=True)
def _copy(values: np.ndarray, out: np.ndarray, to: int, cells: int, together: int, n: int) -> None:
    values = uncounted(values)
    out = uncounted(out)
    if together == 4:
        # All are read before any is written: four at once.
        for i in range(cells):
            a = values[4 * i]
            b = values[4 * i + 1]
            c = values[4 * i + 2]
            d = values[4 * i + 3]
            at = to + i * n
            out[at] = a
            out[at + 1] = b
            out[at + 2] = c
            out[at + 3] = d
        return
    if together == 2 and FEW_TOGETHER == 2:
        for i in range(cells):
            a = values[2 * i]
            b = values[2 * i + 1]
            at = to + i * n
            out[at] = a
            out[at + 1] = b
        return
    for i in range(cells):
        for k in range(together):
            out[to + i * n + k] = values[i * FEW_TOGETHER + k]


@njit(cache=True, nogil=True)
def _draw_planes(
    x: np.ndarray, unit: np.float32, ints: np.ndarray, row: int, plane: int, planes: np.ndarray
) -> None:
    """Write an image times ``unit`` into planes with zeros around them."""
    x = uncounted(x)
    planes = uncounted(planes)
    channels = ints[CHANNELS]
    width = ints[WIDTH] // channels
    margin = ints[INSIDE] % ints[LINE] // channels
    # Where the first even column of pixels goes, and the first odd one.
    begins = (margin % 2 * plane + margin // 2, (margin + 1) % 2 * plane + (margin + 1) // 2)
    top = ints[INSIDE] // ints[LINE]
    for y in range(ints[HEIGHT]):
        line = (y + top) * row
        even = begins[0] + line
        odd = begins[1] + line
        if channels == 1 or channels == 3:
            # The last vector goes on to the next line of pixels, which comes afterwards.
            for i in range(0, width, 2 * LANES):
                at = (y * width + i) * channels
                split_columns(x, at, unit, channels, planes, even + i // 2, odd + i // 2, 2 * plane)
            continue
        for c in range(channels):
            for i in range(width):
                to = (even if i % 2 == 0 else odd) + 2 * c * plane + i // 2
                planes[to] = x[(y * width + i) * channels + c] * unit
    if ints[INSIDE] == 0:
        return
    # Nothing around the pixels.
    last = top + ints[HEIGHT]
    for k in range(2 * channels):
        parity = k % 2
        columns = (width + 1 - (parity + margin) % 2) // 2
        before = (margin + 1 - parity) // 2
        for y in range(ints[HEIGHT] + 2 * top):
            begin = k * plane + y * row
            if y < top or y >= last:
                planes[begin : begin + row] = np.float32(0)
                continue
            planes[begin : begin + before] = np.float32(0)
            planes[begin + before + columns : begin + row] = np.float32(0)
