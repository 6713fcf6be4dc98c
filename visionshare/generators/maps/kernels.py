"""Maps of images and gradients through them: convolution, maximum with 0, maximum of cells.

Images lie side by side, innermost in every array of a block, so that each step is one over
contiguous floats. A block of one image is the same program with a width of one: the bits of a map
do not depend on how many images are asked for.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.patches.record_kernels import pixel_unit

__all__ = ["WIDE", "image_gradients", "maps_of_block", "template_gradients"]

WIDE = 16


@njit(cache=True, nogil=True)
def _planes(images: np.ndarray, pad: int, wide: int, out: np.ndarray) -> None:
    """Write images (n, H, W, C) into planes (C, H + 2·pad, W + 2·pad, wide) of zeros."""
    n, rows, cols, channels = images.shape
    unit, width = pixel_unit(images), cols + 2 * pad
    for c in range(channels):
        for y in range(rows):
            for x in range(cols):
                offset = ((c * (rows + 2 * pad) + y + pad) * width + x + pad) * wide
                for i in range(n):
                    out[offset + i] = np.float32(images[i, y, x, c]) * unit


@njit(cache=True, nogil=True)
def _add_one(pixels: np.ndarray, taps: np.ndarray, out: np.ndarray) -> None:
    w = taps[0]
    for i in range(out.shape[0]):
        out[i] += w * pixels[i]


@njit(cache=True, nogil=True)
def _add_three(pixels: np.ndarray, wide: int, taps: np.ndarray, out: np.ndarray) -> None:
    u, v, w = taps[0], taps[1], taps[2]
    one, two = pixels[wide:], pixels[2 * wide :]
    for i in range(out.shape[0]):
        out[i] += (u * pixels[i] + v * one[i]) + w * two[i]


@njit(cache=True, nogil=True)
def _add_five(pixels: np.ndarray, wide: int, taps: np.ndarray, out: np.ndarray) -> None:
    t, u, v, w, z = taps[0], taps[1], taps[2], taps[3], taps[4]
    one, two, three = pixels[wide:], pixels[2 * wide :], pixels[3 * wide :]
    four = pixels[4 * wide :]
    for i in range(out.shape[0]):
        out[i] += ((t * pixels[i] + u * one[i]) + (v * two[i] + w * three[i])) + z * four[i]


@njit(cache=True, nogil=True)
def _add_row(pixels: np.ndarray, wide: int, taps: np.ndarray, out: np.ndarray) -> None:
    """Add a row of a template's taps at neighboring positions."""
    dx, q = 0, taps.shape[0]
    while dx < q:
        if q - dx >= 5:
            _add_five(pixels[dx * wide :], wide, taps[dx:], out)
            dx += 5
        elif q - dx >= 3:
            _add_three(pixels[dx * wide :], wide, taps[dx:], out)
            dx += 3
        else:
            _add_one(pixels[dx * wide :], taps[dx:], out)
            dx += 1


@njit(cache=True, nogil=True)
def _cells(rows: np.ndarray, pool: int, wide: int, best: np.ndarray, where: np.ndarray) -> None:
    """Write the maximum with 0 over each cell of ``pool`` rows, and its place; −1 for none.

    ``rows`` is (pool, cells · pool · wide); ``best`` and ``where`` are (cells · wide,).
    """
    best[:] = np.float32(0)
    where[:] = -1
    for cell in range(best.shape[0] // wide):
        highest, place = best[cell * wide : (cell + 1) * wide], where[cell * wide :]
        for dy in range(pool):
            for dx in range(pool):
                values = rows[dy, (cell * pool + dx) * wide :]
                number = np.int8(dy * pool + dx)
                for i in range(wide):
                    v = values[i]
                    above = v > highest[i]
                    highest[i] = v if above else highest[i]
                    place[i] = number if above else place[i]


@njit(cache=True, nogil=True)
def maps_of_block(
    images: np.ndarray,
    taps: np.ndarray,
    biases: np.ndarray,
    pad: int,
    pool: int,
    out: np.ndarray,
    seen: np.ndarray,
) -> None:
    """Write the maps of images.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
    taps : ndarray of shape (n_maps, C, q, q), float32
    biases : ndarray of shape (n_maps,), float32
    pad, pool : int
        Zero pixels around the image, and the side of a cell.
    out : ndarray of shape (n, h, w, n_maps), float32
    seen : ndarray of shape (n, h, w, n_maps), int8, or (0, 0, 0, 0)
        Where each maximum is in its cell, row · pool + column; −1 where the map is zero. Not
        written when empty.
    """
    n, rows, cols, channels = images.shape
    n_maps, _, q, _ = taps.shape
    h, w = out.shape[1], out.shape[2]
    wide = WIDE if n > 1 else 1
    width = (cols + 2 * pad) * wide
    plane, size = (rows + 2 * pad) * width, w * pool * wide
    pixels = np.zeros(channels * plane, np.float32)
    responses = np.empty((pool, size), np.float32)
    best, where = np.empty(w * wide, np.float32), np.empty(w * wide, np.int8)
    for first in range(0, n, wide):
        last = min(n, first + wide)
        _planes(images[first:last], pad, wide, pixels)
        for y in range(h):
            for m in range(n_maps):
                for dy in range(pool):
                    row = responses[dy]
                    row[:] = biases[m]
                    for c in range(channels):
                        for ty in range(q):
                            start = c * plane + (y * pool + dy + ty) * width
                            _add_row(pixels[start:], wide, taps[m, c, ty], row)
                _cells(responses, pool, wide, best, where)
                for x in range(w):
                    for i in range(last - first):
                        out[first + i, y, x, m] = best[x * wide + i]
                if seen.size:
                    for x in range(w):
                        for i in range(last - first):
                            seen[first + i, y, x, m] = where[x * wide + i]


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
    images : ndarray of shape (n, H, W, C), uint8 or float32
    seen : ndarray of shape (n, h, w, n_maps), int8
        As :func:`maps_of_block` wrote it.
    G : ndarray of shape (n, h, w, n_maps), float32
        Derivatives in the maps.
    pad, pool : int
    out : ndarray of shape (n_maps, q, q, C), float32
    biases : ndarray of shape (n_maps,), float32
    """
    n, rows, cols, channels = images.shape
    n_maps, q = out.shape[0], out.shape[1]
    padded = np.zeros((rows + 2 * pad, (cols + 2 * pad) * channels), np.float32)
    unit, length = pixel_unit(images), q * channels
    for i in range(n):
        for y in range(rows):
            for x in range(cols):
                for c in range(channels):
                    value = np.float32(images[i, y, x, c]) * unit
                    padded[y + pad, (x + pad) * channels + c] = value
        for y in range(seen.shape[1]):
            for x in range(seen.shape[2]):
                for m in range(n_maps):
                    g, place = G[i, y, x, m], seen[i, y, x, m]
                    if place >= 0 and g != 0:
                        top, left = y * pool + place // pool, (x * pool + place % pool) * channels
                        biases[m] += g
                        for ty in range(q):
                            for t in range(length):
                                out[m, ty, t // channels, t % channels] += (
                                    g * padded[top + ty, left + t]
                                )


@njit(cache=True, nogil=True)
def image_gradients(
    seen: np.ndarray, G: np.ndarray, templates: np.ndarray, pad: int, pool: int, out: np.ndarray
) -> None:
    """Add the gradients in the pixels of Σ G · maps to ``out`` (n, H, W, C), float32.

    ``templates`` is (n_maps, q, q, C), and pixels are read as they are.
    """
    rows, cols, channels = out.shape[1:]
    n_maps, q = templates.shape[0], templates.shape[1]
    for i in range(out.shape[0]):
        for y in range(seen.shape[1]):
            for x in range(seen.shape[2]):
                for m in range(n_maps):
                    g, place = G[i, y, x, m], seen[i, y, x, m]
                    if place >= 0 and g != 0:
                        top, left = y * pool + place // pool - pad, x * pool + place % pool - pad
                        for ty in range(max(0, -top), min(q, rows - top)):
                            for tx in range(max(0, -left), min(q, cols - left)):
                                for c in range(channels):
                                    out[i, top + ty, left + tx, c] += g * templates[m, ty, tx, c]
