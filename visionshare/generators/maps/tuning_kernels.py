"""Gradients through maps: in templates and biases, and in the pixels below."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.cells.gradients import (
    Entries,
    Rows,
    add_apart,
    add_together,
    empty_entries,
    filled,
    rows_of,
)
from visionshare.generators.cells.kernels import Canvas, aligned, canvas_of, cut_out, draw
from visionshare.generators.maps.kernels import cells_of
from visionshare.generators.patches.record_kernels import pixel_unit

__all__ = ["image_gradients", "template_gradients"]


@njit(cache=True, nogil=True)
def _list_map(
    seen: np.ndarray, G: np.ndarray, m: int, starts: np.ndarray, size: int, entries: Entries
) -> int:
    """List where the maxima of map m are, and its derivatives; return how many there are."""
    seen, G, starts = borrowed(seen), borrowed(G), borrowed(starts)
    places, factors, n = borrowed(entries.starts), borrowed(entries.factors), 0
    for cell in range(seen.shape[0]):
        place = np.int64(seen[cell, m])
        # Written whatever the place is: what is nowhere is written over.
        places[n], factors[n] = starts[cell * size + max(place, 0)], G[cell, m]
        n += place >= 0
    return n


@njit(cache=True, nogil=True)
def template_gradients(
    images: np.ndarray,
    seen: np.ndarray,
    G: np.ndarray,
    pad: int,
    pool: int,
    out: np.ndarray,
    biases: np.ndarray,
) -> None:
    """Add the gradients in templates and biases of Σ G · maps, where each maximum is.

    Parameters
    ----------
    images : ndarray of shape (n, H, W · C), uint8 or float32
    seen : ndarray of shape (n, h, w, n_maps), int8
        As :func:`visionshare.generators.maps.kernels.maps_of_block` wrote it.
    G : ndarray of shape (n, h, w, n_maps), float32
        Derivatives in the maps.
    pad, pool : int
    out : ndarray of shape (n_maps, q, q · C), float32
    biases : ndarray of shape (n_maps,), float32
    """
    (n, rows, cols, n_maps), (_, q, length) = seen.shape, out.shape
    channels, size, n_cells = length // q, pool * pool, rows * cols
    canvas = canvas_of(images.shape[1], images.shape[2] // channels, channels, pad, pad)
    starts, unit = cells_of(rows, cols, pool, canvas.row, channels).starts, pixel_unit(images)
    entries, line = empty_entries(n_cells + 1), filled(length)
    sums, source = Rows(aligned(n_maps * q * line), line), Rows(canvas.pixels, canvas.row)
    for i in range(n):
        draw(images[i], unit, canvas)
        places, slopes = seen[i].reshape((n_cells, n_maps)), G[i].reshape((n_cells, n_maps))
        for m in range(n_maps):
            count, total = _list_map(places, slopes, m, starts, size, entries), np.float32(0)
            for e in range(count):
                total += entries.factors[e]
            biases[m] += total
            add_together(source, entries, count, q, length, sums, m * q * line)
    out += sums.values.reshape((n_maps, q, line))[:, :, :length]


@njit(cache=True, nogil=True)
def image_gradients(
    seen: np.ndarray, G: np.ndarray, templates: np.ndarray, pad: int, pool: int, out: np.ndarray
) -> None:
    """Write the gradients in the pixels of Σ G · maps to ``out`` (n, H, W · C), float32.

    ``templates`` is (n_maps, q, q · C), and pixels are read as they are.
    """
    (n, rows, cols, n_maps), (_, q, length) = seen.shape, templates.shape
    channels, height, width = length // q, out.shape[1], out.shape[2]
    canvas, source = canvas_of(height, width // channels, channels, pad, pad), rows_of(templates)
    starts, n_cells = cells_of(rows, cols, pool, canvas.row, channels).starts, rows * cols
    size = q * source.line
    # A tile for each position in a cell, after one for maps that have no maximum.
    tiles = Rows(aligned((pool * pool + 1) * size), source.line)
    begins, tos = np.arange(0, n_maps * size, size), np.empty(n_maps, np.int64)
    for i in range(n):
        places, entries = seen[i].reshape(-1), Entries(begins, G[i].reshape(-1))
        canvas.pixels[:] = np.float32(0)
        for cell in range(n_cells):
            _tiles_of(places[cell * n_maps : (cell + 1) * n_maps], size, tos)
            tiles.values[size:] = np.float32(0)
            add_apart(source, entries, cell * n_maps, n_maps, q, length, tiles, tos)
            of_cell = starts[cell * pool * pool : (cell + 1) * pool * pool]
            _add_tiles(tiles, q, canvas, of_cell)
        cut_out(canvas, out[i])


@njit(cache=True, nogil=True)
def _tiles_of(places: np.ndarray, size: int, tos: np.ndarray) -> None:
    places, tos = borrowed(places), borrowed(tos)
    for m in range(tos.shape[0]):
        tos[m] = (np.int64(places[m]) + 1) * size


@njit(cache=True, nogil=True)
def _add_tiles(tiles: Rows, q: int, canvas: Canvas, starts: np.ndarray) -> None:
    """Add the tiles of a cell's positions where their patches are."""
    values, pixels, starts = borrowed(tiles.values), borrowed(canvas.pixels), borrowed(starts)
    line, tile = tiles.line, q * tiles.line
    for p in range(starts.shape[0]):
        for y in range(q):
            begin, end = (p + 1) * tile + y * line, starts[p] + y * canvas.row
            row, target = values[begin : begin + line], pixels[end : end + line]
            for t in range(line):
                target[t] += row[t]
