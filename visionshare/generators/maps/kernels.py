"""Maps of images: convolution, maximum with 0, maximum of cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.cells.kernels import (
    Cells,
    aligned,
    canvas_of,
    cell_maxima,
    draw,
    sums_of,
    taps_of,
)
from visionshare.generators.maps.few_kernels import few_maps_of_block, fill_vectors
from visionshare.generators.patches.record_kernels import pixel_unit

__all__ = ["cells_of", "maps_of_block"]


@njit(cache=True, nogil=True)
def cells_of(rows: int, cols: int, pool: int, line: int, channels: int) -> Cells:
    """Return rows × cols cells of pool × pool positions, of a canvas with rows of ``line`` floats.

    Position number p of cell number c is number c · pool² + p, and is called p.
    """
    size = pool * pool
    count = rows * cols * size
    starts, names = np.empty(count, np.int64), np.empty(count, np.int64)
    number = 0
    for y in range(rows):
        for x in range(cols):
            for dy in range(pool):
                begin = (y * pool + dy) * line + x * pool * channels
                for dx in range(pool):
                    starts[number], names[number] = begin + dx * channels, dy * pool + dx
                    number += 1
    return Cells(starts, names, np.arange(0, count + 1, size))


@njit(cache=True, nogil=True)
def maps_of_block(
    images: np.ndarray,
    templates: np.ndarray,
    biases: np.ndarray,
    pad: int,
    pool: int,
    out: np.ndarray,
    seen: np.ndarray,
) -> None:
    """Write the maps of images.

    Parameters
    ----------
    images : ndarray of shape (n, H, W · C), uint8 or float32
    templates : ndarray of shape (n_maps, q, q · C), float32
    biases : ndarray of shape (n_maps,), float32
    pad, pool : int
        Zero pixels around the image, and the side of a cell.
    out : ndarray of shape (n, h, w, n_maps), float32
    seen : ndarray of shape (n, h, w, n_maps), int8, or (0, 0, 0, 0)
        Where each maximum is in its cell, row · pool + column; −1 where the map is zero. Not
        written when empty.
    """
    n, rows, cols, n_maps = out.shape
    if fill_vectors(n_maps, cols, pool):
        few_maps_of_block(images, templates, biases, pad, pool, out, seen)
        return
    channels = templates.shape[2] // templates.shape[1]
    canvas = canvas_of(images.shape[1], images.shape[2] // channels, channels, pad, pad)
    taps, cells = taps_of(templates, biases), cells_of(rows, cols, pool, canvas.row, channels)
    sums, unit, n_cells = sums_of(cells), pixel_unit(images), rows * cols
    with_places, whole = seen.size > 0, taps.lanes == n_maps
    nowhere = np.empty(0 if with_places and whole else n_cells * taps.lanes, np.int8)
    lanes = aligned(0 if whole else n_cells * taps.lanes)
    for i in range(n):
        draw(images[i], unit, canvas)
        if whole:
            places = seen[i].reshape(-1) if with_places else nowhere
            cell_maxima(canvas, taps, cells, sums, out[i].reshape(-1), places, with_places)
            continue
        cell_maxima(canvas, taps, cells, sums, lanes, nowhere, with_places)
        _leave_out(lanes, taps.lanes, out[i].reshape((n_cells, n_maps)))
        if with_places:
            _leave_out(nowhere, taps.lanes, seen[i].reshape((n_cells, n_maps)))


@njit(cache=True, nogil=True)
def _leave_out(values: np.ndarray, lanes: int, out: np.ndarray) -> None:
    """Copy the values of the maps that there are, without those of zeros beside them."""
    for cell in range(out.shape[0]):
        for m in range(out.shape[1]):
            out[cell, m] = values[cell * lanes + m]
