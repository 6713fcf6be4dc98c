"""Largest responses of templates in cells of positions of an image, for maps and for patches.

Templates lie side by side in vectors: a pixel is read once for all of them, and an image is
computed alone, so that its bits do not depend on other images. A response is the sum of
a bias and of the taps, row by row, each product added in one step where the processor can.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.templates.intrinsics import (
    LANES,
    NARROW,
    NARROW_POSITIONS,
    POSITIONS,
    TRIPLE,
    TRIPLE_POSITIONS,
    WIDEST,
    largest,
    respond,
)

# Positions whose responses are kept until they are pooled.
CHUNK = 64


class Canvas(NamedTuple):
    """A padded image: its floats, the floats of a row, and the first pixel inside the margins."""

    pixels: np.ndarray
    row: int
    inside: int


class Taps(NamedTuple):
    """Templates side by side in groups: biases, then tap after tap, zeros where none is left."""

    values: np.ndarray
    lanes: int
    rows: int
    length: int


class Cells(NamedTuple):
    """Positions cell by cell: where their patches begin in a canvas."""

    starts: np.ndarray
    firsts: np.ndarray


@njit(cache=True, nogil=True)
def aligned(n: int) -> np.ndarray:
    """Return zeros that begin where a line of the cache does: no vector of them lies on two."""
    values = unset(n)
    values[:] = np.float32(0)
    return values


@njit(cache=True, nogil=True)
def unset(n: int) -> np.ndarray:
    """Return memory that begins where a line of the cache does."""
    spare = np.empty(n + LANES, np.float32)
    start = (LANES - spare.ctypes.data // 4 % LANES) % LANES
    return spare[start : start + n]


@njit(cache=True, nogil=True)
def draw(image: np.ndarray, unit: np.float32, canvas: Canvas) -> None:
    """Write an image (H, W · C) times ``unit`` into a canvas, and zeros around it."""
    image = uncounted(image)
    pixels = uncounted(canvas.pixels)
    height, width = image.shape
    end = 0
    for y in range(height):
        begin = canvas.inside + y * canvas.row
        pixels[end:begin] = np.float32(0)
        end = begin + width
        line = pixels[begin:end]
        values = image[y]
        for i in range(width):
            line[i] = np.float32(values[i]) * unit
    pixels[end:] = np.float32(0)


@njit(cache=True, nogil=True)
def cut_out(canvas: Canvas, out: np.ndarray) -> None:
    """Write what is inside the margins of a canvas to ``out`` (H, W · C)."""
    pixels = uncounted(canvas.pixels)
    out = uncounted(out)
    for y in range(out.shape[0]):
        begin = canvas.inside + y * canvas.row
        line = out[y]
        values = pixels[begin : begin + out.shape[1]]
        for i in range(line.shape[0]):
            line[i] = values[i]


@njit(cache=True, nogil=True)
def _group(left: int) -> int:
    """Return how many templates are computed side by side when ``left`` are left."""
    if WIDEST == 32 and left > 24:
        return 32
    if WIDEST == 16 and left > 16 and 4 < left % 16 <= 8:
        return TRIPLE
    if left > 8:
        return 16
    return 8 if left > 4 else 4


@njit(cache=True, nogil=True)
def _positions(width: int) -> int:
    """Return at how many positions templates side by side are computed at once."""
    if width == TRIPLE:
        return TRIPLE_POSITIONS
    return NARROW_POSITIONS if width <= NARROW else POSITIONS


@njit(cache=True, nogil=True)
def lanes_of(n: int) -> int:
    """Return how many templates are computed for ``n``, padding by zeros included."""
    lanes = 0
    while lanes < n:
        lanes += _group(n - lanes)
    return lanes


@njit(cache=True, nogil=True)
def taps_of(templates: np.ndarray, biases: np.ndarray) -> Taps:
    """Return templates (n, q, q · C) as responses read them."""
    n, rows, length = templates.shape
    lanes = lanes_of(n)
    values = aligned(lanes * (rows * length + 1))
    first = 0
    while first < n:
        width = _group(n - first)
        at = first * (rows * length + 1)
        for t in range(first, min(n, first + width)):
            values[at + t - first] = biases[t]
            to = at + width + t - first
            for y in range(rows):
                for x in range(length):
                    values[to] = templates[t, y, x]
                    to += width
        first += width
    return Taps(values, lanes, rows, length)


@njit(cache=True, nogil=True)
def _cells_together(firsts: np.ndarray, first: int) -> int:
    """Return the end of the cells from ``first`` on whose responses are kept together."""
    last = first + 1
    while last + 1 < firsts.shape[0] and firsts[last + 1] - firsts[first] <= CHUNK:
        last += 1
    return last


@njit(cache=True, nogil=True)
def sums_of(cells: Cells) -> np.ndarray:
    """Return the buffer that :func:`cell_maxima` needs."""
    most = 0
    first = 0
    while first + 1 < cells.firsts.shape[0]:
        last = _cells_together(cells.firsts, first)
        most = max(most, cells.firsts[last] - cells.firsts[first])
        first = last
    return aligned(most * max(WIDEST, TRIPLE))


@njit(cache=True, nogil=True)
def cell_maxima(
    canvas: Canvas,
    taps: Taps,
    cells: Cells,
    sums: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
    with_places: bool,
) -> None:
    """Write each template's maximum with 0 in each cell, (n_cells · lanes,), and where it is."""
    pixels = uncounted(canvas.pixels)
    starts = uncounted(cells.starts)
    firsts = uncounted(cells.firsts)
    sums = uncounted(sums)
    out = uncounted(out)
    places = uncounted(places)
    values = uncounted(taps.values)
    size = taps.rows * taps.length + 1
    n_cells = firsts.shape[0] - 1
    first = 0
    while first < n_cells:
        last = _cells_together(firsts, first)
        begin = firsts[first]
        lane = 0
        while lane < taps.lanes:
            width = _group(taps.lanes - lane)
            # 1) responses, in blocks of positions as equal as they can be: few sums wait
            p = begin
            most = _positions(width)
            for left in range((firsts[last] - begin + most - 1) // most, 0, -1):
                n = (firsts[last] - p + left - 1) // left
                at = (p - begin) * width
                respond(
                    pixels, starts, p, n, canvas.row, taps.rows, taps.length,
                    values, lane * size + width, taps.length * width, width, width,
                    values, lane * size, 0, sums, at, width,
                )  # fmt: skip
                p += n
            # 2) the largest of each cell
            for cell in range(first, last):
                n = firsts[cell + 1] - firsts[cell]
                at = (firsts[cell] - begin) * width
                to = cell * taps.lanes + lane
                largest(
                    sums,
                    at,
                    n,
                    width,
                    starts,
                    firsts[cell],
                    out,
                    places,
                    to,
                    np.int64(with_places),
                )
            lane += width
        first = last
