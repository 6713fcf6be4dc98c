"""The kernel of chosen patch features whose templates are asked for in the same cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.cells.kernels import (
    Cells,
    Taps,
    aligned,
    canvas_of,
    cell_maxima,
    draw,
    sums_of,
)
from visionshare.generators.patches.record_kernels import margin, pixel_unit

__all__ = ["chosen_features_of_cells"]

# Numbers before the tables.
SIZES = 7


@njit(cache=True, nogil=True)
def chosen_features_of_cells(
    images: np.ndarray, tables: np.ndarray, taps: np.ndarray, out: np.ndarray, maxima: np.ndarray
) -> None:
    """Write chosen features: the maxima of all templates in all cells, and of them those chosen.

    Parameters
    ----------
    images : ndarray of shape (n, H, W · C), uint8 or float32
    tables : ndarray of int64
        Numbers of cells and of positions in them, rows and columns of responses, templates with
        those of zeros, rows of a template and floats of a row; then the first position of each
        cell and the number of all, the positions (row · columns + column),
        and for each feature where its maximum is among those of (cells, templates).
    taps : ndarray of float32
        As :func:`visionshare.generators.cells.kernels.taps_of` wrote them.
    out : ndarray of shape (n, n_features), float32
    maxima : ndarray of shape (n, n_features), int32, or (0, 0)
        Where each maximum is, row · columns + column; −1 where the feature is zero. Not written
        when empty.
    """
    n_cells, n_positions, rows, cols, lanes, q, length = tables[:SIZES]
    firsts = tables[SIZES : SIZES + n_cells + 1]
    begin = SIZES + n_cells + 1
    positions = tables[begin : begin + n_positions]
    chosen = tables[begin + n_positions :]
    n, height, width = images.shape
    channels = length // q
    pad_y, pad_x = margin(height, rows, q), margin(width // channels, cols, q)
    canvas = canvas_of(height, width // channels, channels, pad_y, pad_x)
    starts = np.empty(len(positions), np.int64)
    for p in range(len(positions)):
        starts[p] = positions[p] // cols * canvas.row + positions[p] % cols * channels
    cells, unit = Cells(starts, positions, firsts), pixel_unit(images)
    found, places = aligned(n_cells * lanes), np.empty(n_cells * lanes, np.int32)
    sums, with_places = sums_of(cells), maxima.size > 0
    for i in range(n):
        draw(images[i], unit, canvas)
        cell_maxima(canvas, Taps(taps, lanes, q, length), cells, sums, found, places, with_places)
        _choose(found, chosen, out[i])
        if with_places:
            _choose(places, chosen, maxima[i])


@njit(cache=True, nogil=True)
def _choose(values: np.ndarray, chosen: np.ndarray, out: np.ndarray) -> None:
    values, chosen, out = borrowed(values), borrowed(chosen), borrowed(out)
    for f in range(out.shape[0]):
        out[f] = values[chosen[f]]
