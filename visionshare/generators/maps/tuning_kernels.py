"""Gradients through maps: in templates and biases, and in the pixels below."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.cell_kernels import aligned, canvas_of, draw
from visionshare.generators.gradient_kernels import (
    Entries,
    Rows,
    add_entries,
    add_sorted,
    empty_entries,
    filled,
    sort_entries,
)
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
            add_entries(source, entries, 0, count, q, length, sums, m * q * line)
    out += sums.values.reshape((n_maps, q, line))[:, :, :length]


@njit(cache=True, nogil=True)
def image_gradients(
    seen: np.ndarray, G: np.ndarray, templates: np.ndarray, pad: int, pool: int, out: np.ndarray
) -> None:
    """Write the gradients in the pixels of Σ G · maps to ``out`` (n, H, W · C), float32.

    ``templates`` is (n_maps, q, q · C), and pixels are read as they are.
    """
    (n, rows, cols, n_maps), (_, q, length) = seen.shape, templates.shape
    channels, size, line = length // q, pool * pool, filled(length)
    height, width = out.shape[1], out.shape[2]
    canvas = canvas_of(height, width // channels, channels, pad, pad)
    starts = cells_of(rows, cols, pool, canvas.row, channels).starts
    taps = aligned(n_maps * q * line)
    taps.reshape((n_maps, q, line))[:, :, :length] = templates
    source, target, n_cells = Rows(taps, line), Rows(canvas.pixels, canvas.row), rows * cols
    found, in_order = empty_entries(n_cells * n_maps + 1), empty_entries(n_cells * n_maps + 1)
    keys, ends = np.empty(n_cells * n_maps + 1, np.int64), np.empty(n_cells * size, np.int64)
    for i in range(n):
        places, slopes = seen[i].reshape((n_cells, n_maps)), G[i].reshape((n_cells, n_maps))
        count = _list_image(places, slopes, size, q * line, found, keys)
        sort_entries(keys, count, found, ends, in_order)
        canvas.pixels[:] = np.float32(0)
        add_sorted(source, in_order, ends, q, length, target, starts)
        for y in range(height):
            begin = canvas.inside + y * canvas.row
            out[i, y] = canvas.pixels[begin : begin + width]


@njit(cache=True, nogil=True)
def _list_image(
    seen: np.ndarray, G: np.ndarray, size: int, taps: int, entries: Entries, keys: np.ndarray
) -> int:
    """List the templates that have maxima in an image, and the positions of these as keys."""
    seen, G, keys = borrowed(seen), borrowed(G), borrowed(keys)
    starts, factors, n = borrowed(entries.starts), borrowed(entries.factors), 0
    for cell in range(seen.shape[0]):
        for m in range(seen.shape[1]):
            place = np.int64(seen[cell, m])
            keys[n], starts[n], factors[n] = cell * size + place, m * taps, G[cell, m]
            n += place >= 0
    return n
