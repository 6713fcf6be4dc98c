"""Kernels of chains: maps of single maps, maxima of cells, and gradients through both.

Responses and their maxima are those of :mod:`visionshare.generators.maps.kernels`, so that bits
depend neither on how many images are asked for nor on which chains.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.maps.kernels import maps_of_block
from visionshare.generators.maps.tuning_kernels import image_gradients, template_gradients

__all__ = ["cell_columns", "cell_gradients", "map_gradients", "maps_of_maps"]


@njit(cache=True, nogil=True)
def _alone(maps: np.ndarray, p: int) -> np.ndarray:
    """Return a copy of map ``p`` of (n, h, w, n_maps), as images (n, h, w, 1)."""
    n, rows, cols, _ = maps.shape
    alone = np.empty((n, rows, cols, 1), np.float32)
    for i in range(n):
        for y in range(rows):
            for x in range(cols):
                alone[i, y, x, 0] = maps[i, y, x, p]
    return alone


@njit(cache=True, nogil=True)
def _maps_of_map(
    images: np.ndarray, templates: np.ndarray, biases: np.ndarray, pool: int,
    out: np.ndarray, seen: np.ndarray,
) -> None:  # fmt: skip
    """Write maps (n, h, w, n_maps) of images (n, H, W, 1), which may be a part of wider arrays."""
    n, rows, cols, _ = images.shape
    n_maps, q = templates.shape[0], templates.shape[1]
    values = np.empty(out.shape, np.float32)
    places = np.empty(out.shape if seen.size else (0, 0, 0, 0), np.int8)
    maps_of_block(
        images.reshape((n, rows, cols)), templates.copy().reshape((n_maps, q, q)), biases, 0, pool,
        values, places,
    )  # fmt: skip
    out[:] = values
    if seen.size:
        seen[:] = places


@njit(cache=True, nogil=True)
def maps_of_maps(
    maps: np.ndarray, templates: np.ndarray, biases: np.ndarray, starts: np.ndarray, pool: int,
    out: np.ndarray, seen: np.ndarray,
) -> None:  # fmt: skip
    """Write the maps of a layer, each of one map of the layer before.

    Parameters
    ----------
    maps : ndarray of shape (n, h, w, n_before), float32
    templates : ndarray of shape (n_maps, q, q, 1), float32
    biases : ndarray of shape (n_maps,), float32
    starts : ndarray of shape (n_before + 1,), int64
        The maps of map p are those from starts[p] on, below starts[p + 1].
    pool : int
        Side of the cells whose maximum is kept.
    out : ndarray of shape (n, h', w', n_maps), float32
    seen : ndarray of shape (n, h', w', n_maps), int8, or (0, 0, 0, 0)
        As :func:`visionshare.generators.maps.kernels.maps_of_block` has it.
    """
    for p in range(maps.shape[3]):
        a, b = starts[p], starts[p + 1]
        if a < b:
            places = seen[..., a:b] if seen.size else seen
            above = out[..., a:b]
            _maps_of_map(_alone(maps, p), templates[a:b], biases[a:b], pool, above, places)


@njit(cache=True, nogil=True)
def _cell_maxima(maps: np.ndarray, rows: np.ndarray, cols: np.ndarray, out: np.ndarray) -> None:
    """Write the maxima of maps (n, h, w, n_maps) over the cells of a grid, (n, cells, n_maps)."""
    out[:] = np.float32(0)
    across, n_maps = len(cols) - 1, maps.shape[3]
    for i in range(maps.shape[0]):
        for r in range(len(rows) - 1):
            for c in range(across):
                best = out[i, r * across + c]
                for y in range(rows[r], rows[r + 1]):
                    for x in range(cols[c], cols[c + 1]):
                        values = maps[i, y, x]
                        for k in range(n_maps):
                            best[k] = max(best[k], values[k])


@njit(cache=True, nogil=True)
def _cell_positions(
    maps: np.ndarray, seen: np.ndarray, rows: np.ndarray, cols: np.ndarray, pool: int,
    best: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Write where the maxima of cells are, row · columns + column of the response; −1 where 0.

    Of equal ones the first row, then the first column of the map counts.
    """
    out[:] = np.int32(-1)
    across, width = len(cols) - 1, maps.shape[2] * pool
    for i in range(maps.shape[0]):
        for r in range(len(rows) - 1):
            for c in range(across):
                cell = r * across + c
                for y in range(rows[r], rows[r + 1]):
                    for x in range(cols[c], cols[c + 1]):
                        for k in range(maps.shape[3]):
                            place = seen[i, y, x, k]
                            value = maps[i, y, x, k]
                            if place >= 0 and out[i, cell, k] < 0 and value == best[i, cell, k]:
                                row, col = y * pool + place // pool, x * pool + place % pool
                                out[i, cell, k] = row * width + col


@njit(cache=True, nogil=True)
def cell_columns(
    maps: np.ndarray, templates: np.ndarray, biases: np.ndarray, starts: np.ndarray, pool: int,
    rows: np.ndarray, cols: np.ndarray, out: np.ndarray, positions: np.ndarray,
) -> None:  # fmt: skip
    """Write the maxima of the last layer's maps over the cells of a grid.

    Parameters
    ----------
    maps, templates, biases, starts, pool
        As in :func:`maps_of_maps`; only the maps of one map before are held at a time.
    rows, cols : ndarray of shape (grid + 1,), int64
        First row, and first column, of each cell of the grid in a map, and where the last ends.
    out : ndarray of shape (n, grid², n_maps), float32
    positions : ndarray of shape (n, grid², n_maps), int32, or (0, 0, 0)
        Where each maximum is, row · columns + column of the response; −1 where it is 0. Not
        written when empty.
    """
    n, h, w = len(maps), rows[-1], cols[-1]
    most = np.max(np.diff(starts))
    values = np.empty((n, h, w, most), np.float32)
    seen = np.empty(values.shape if positions.size else (0, 0, 0, 0), np.int8)
    for p in range(maps.shape[3]):
        a, b = starts[p], starts[p + 1]
        if a < b:
            of_map = values[..., : b - a]
            places = seen[..., : b - a] if positions.size else seen
            _maps_of_map(_alone(maps, p), templates[a:b], biases[a:b], pool, of_map, places)
            best = out[:, :, a:b]
            _cell_maxima(of_map, rows, cols, best)
            if positions.size:
                where = positions[:, :, a:b]
                _cell_positions(of_map, places, rows, cols, pool, best, where)


@njit(cache=True, nogil=True)
def cell_gradients(
    maps: np.ndarray, templates: np.ndarray, parents: np.ndarray, width: int,
    positions: np.ndarray, G: np.ndarray, of_templates: np.ndarray, of_biases: np.ndarray,
    of_maps: np.ndarray,
) -> None:  # fmt: skip
    """Add the gradients of Σ G · columns in the last layer's parameters and in the maps below it.

    Parameters
    ----------
    maps : ndarray of shape (n, h, w, n_before), float32
    templates : ndarray of shape (n_maps, q, q, 1), float32
    parents : ndarray of shape (n_maps,), int64
        The map that each one is of.
    width : int
        Columns of responses.
    positions : ndarray of shape (n, grid², n_maps), int32
        As :func:`cell_columns` wrote it.
    G : ndarray of shape (n, grid², n_maps), float32
        Derivatives in the columns.
    of_templates, of_biases, of_maps : ndarray, float32
        Of the shapes of templates, biases and maps.
    """
    q = templates.shape[1]
    for i in range(G.shape[0]):
        for cell in range(G.shape[1]):
            for k in range(G.shape[2]):
                g, position = G[i, cell, k], positions[i, cell, k]
                if position >= 0 and g != 0:
                    top, left, p = position // width, position % width, parents[k]
                    of_biases[k] += g
                    for y in range(q):
                        for x in range(q):
                            of_templates[k, y, x, 0] += g * maps[i, top + y, left + x, p]
                            of_maps[i, top + y, left + x, p] += g * templates[k, y, x, 0]


@njit(cache=True, nogil=True)
def map_gradients(
    maps: np.ndarray, templates: np.ndarray, starts: np.ndarray, pool: int, seen: np.ndarray,
    G: np.ndarray, of_templates: np.ndarray, of_biases: np.ndarray, of_maps: np.ndarray,
) -> None:  # fmt: skip
    """Add the gradients of Σ G · maps of a layer in its parameters and in the maps below it.

    Parameters
    ----------
    maps, templates, starts, pool, seen
        As in :func:`maps_of_maps`.
    G : ndarray of shape (n, h', w', n_maps), float32
        Derivatives in the maps of the layer.
    of_templates, of_biases, of_maps : ndarray, float32
        Of the shapes of templates, biases and maps.
    """
    n, rows, cols, n_before = maps.shape
    q = templates.shape[1]
    below = np.empty((n, rows, cols), np.float32)
    for p in range(n_before):
        a, b = starts[p], starts[p + 1]
        if a < b:
            places, slopes = seen[..., a:b].copy(), G[..., a:b].copy()
            alone = _alone(maps, p).reshape((n, rows, cols))
            added = of_templates[a:b].reshape((b - a, q, q))
            template_gradients(alone, places, slopes, 0, pool, added, of_biases[a:b])
            flat = templates[a:b].copy().reshape((b - a, q, q))
            image_gradients(places, slopes, flat, 0, pool, below)
            of_maps[..., p] += below
