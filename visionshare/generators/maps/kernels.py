"""Maps of images and gradients through them: convolution, maximum with 0, maximum of cells.

Sixteen images lie side by side, innermost in every array, so that each step is one over
contiguous floats; an image alone is the same program with a width of one, and rows follow each
other without a gap. Nothing is summed in another order: the bits of a map do not depend on how
many images are asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.patches.record_kernels import pixel_unit

__all__ = ["image_gradients", "maps_of_block", "template_gradients"]

WIDE = 16
# Fewer images than these are computed one by one.
FEW = 6
# Responses of a map that are computed at once: those of four maps stay in the first cache.
PART = 2048
# Floats of a line of the cache.
LINE = 16
# Unsigned numbers are never counted from an array's end: loops over them are vectorized.
ONE, TWO, THREE = np.uint64(PART), np.uint64(2 * PART), np.uint64(3 * PART)


class Planes(NamedTuple):
    """Padded images, a plane for each channel: floats of a plane, of a row and of a column."""

    pixels: np.ndarray
    plane: int
    row: int
    column: int


class Taps(NamedTuple):
    """Templates as sums read them: channels, rows and columns of each, filled up with zeros.

    Four maps have their taps side by side; those that are left, one after the other.
    """

    values: np.ndarray
    channels: int
    rows: int
    columns: int


class Cells(NamedTuple):
    """Side of a cell, images side by side, and floats from a row of responses to the next."""

    pool: int
    wide: int
    line: int


class Scratch(NamedTuple):
    """Buffers of one map: maxima over rows of cells, and over all of each; where they are."""

    best: np.ndarray
    highest: np.ndarray
    where: np.ndarray


@njit(cache=True, nogil=True)
def _filled(size: int) -> int:
    """Return the taps of a row that sums of five and of three make of ``size``."""
    taken = 0
    while taken < size:
        taken += _step(size - taken)
    return taken


@njit(cache=True, nogil=True)
def _step(left: int) -> int:
    return 3 if left <= 3 or left == 6 else 5


@njit(cache=True, nogil=True)
def _taps(templates: np.ndarray) -> Taps:
    """Return templates (n_maps, q, q, C) in the order of the sums."""
    n_maps, q, _, channels = templates.shape
    filled = _filled(q)
    size = channels * q * filled
    values = np.zeros(n_maps * size, np.float32)
    for m in range(n_maps):
        together = 4 if m < n_maps // 4 * 4 else 1
        start = m // together * together * size + m % together
        for c in range(channels):
            for y in range(q):
                for x in range(q):
                    tap = (c * q + y) * filled + x
                    values[start + tap * together] = templates[m, y, x, c]
    return Taps(values, channels, q, filled)


@njit(cache=True, nogil=True)
def _aligned(n: int) -> np.ndarray:
    """Return floats that begin where a line of the cache does: no vector of them lies on two."""
    spare = np.empty(n + LINE, np.float32)
    start = (LINE - spare.ctypes.data // 4 % LINE) % LINE
    return spare[start : start + n]


@njit(cache=True, nogil=True)
def _planes(images: np.ndarray, pad: int, wide: int, slack: int) -> Planes:
    """Return up to ``wide`` images (n, H, W, C) in planes with zeros around them and at the end."""
    n, rows, cols, channels = images.shape
    unit, row = pixel_unit(images), (cols + 2 * pad) * wide
    plane = (rows + 2 * pad) * row
    pixels = _aligned(channels * plane + slack * wide)
    pixels[:] = np.float32(0)
    for c in range(channels):
        for y in range(rows):
            start = c * plane + (y + pad) * row + pad * wide
            if wide == 1:
                line = pixels[start : start + cols]
                for x in range(cols):
                    line[x] = np.float32(images[0, y, x, c]) * unit
            else:
                for x in range(cols):
                    values = pixels[start + x * wide : start + x * wide + n]
                    for i in range(n):
                        values[i] = np.float32(images[i, y, x, c]) * unit
    return Planes(pixels, plane, row, wide)


@njit(cache=True, nogil=True)
def _add_five_to_four(
    pixels: np.ndarray, p: np.uint64, step: np.uint64, taps: np.ndarray, n: np.uint64,
    sums: np.ndarray,
) -> None:  # fmt: skip
    """Add five neighboring taps of four maps at ``n`` positions: pixels are read once for all."""
    a0, b0, c0, d0 = taps[0], taps[1], taps[2], taps[3]
    a1, b1, c1, d1 = taps[4], taps[5], taps[6], taps[7]
    a2, b2, c2, d2 = taps[8], taps[9], taps[10], taps[11]
    a3, b3, c3, d3 = taps[12], taps[13], taps[14], taps[15]
    a4, b4, c4, d4 = taps[16], taps[17], taps[18], taps[19]
    q, r = p + step, p + step + step
    s, t = r + step, r + step + step
    for i in range(n):
        u, v, w, x, y = pixels[p + i], pixels[q + i], pixels[r + i], pixels[s + i], pixels[t + i]
        sums[i] += ((a0 * u + a1 * v) + (a2 * w + a3 * x)) + a4 * y
        sums[i + ONE] += ((b0 * u + b1 * v) + (b2 * w + b3 * x)) + b4 * y
        sums[i + TWO] += ((c0 * u + c1 * v) + (c2 * w + c3 * x)) + c4 * y
        sums[i + THREE] += ((d0 * u + d1 * v) + (d2 * w + d3 * x)) + d4 * y


@njit(cache=True, nogil=True)
def _add_three_to_four(
    pixels: np.ndarray, p: np.uint64, step: np.uint64, taps: np.ndarray, n: np.uint64,
    sums: np.ndarray,
) -> None:  # fmt: skip
    a0, b0, c0, d0 = taps[0], taps[1], taps[2], taps[3]
    a1, b1, c1, d1 = taps[4], taps[5], taps[6], taps[7]
    a2, b2, c2, d2 = taps[8], taps[9], taps[10], taps[11]
    q, r = p + step, p + step + step
    for i in range(n):
        u, v, w = pixels[p + i], pixels[q + i], pixels[r + i]
        sums[i] += (a0 * u + a1 * v) + a2 * w
        sums[i + ONE] += (b0 * u + b1 * v) + b2 * w
        sums[i + TWO] += (c0 * u + c1 * v) + c2 * w
        sums[i + THREE] += (d0 * u + d1 * v) + d2 * w


@njit(cache=True, nogil=True)
def _add_five(
    pixels: np.ndarray, p: np.uint64, step: np.uint64, taps: np.ndarray, n: np.uint64,
    sums: np.ndarray,
) -> None:  # fmt: skip
    a0, a1, a2, a3, a4 = taps[0], taps[1], taps[2], taps[3], taps[4]
    q, r = p + step, p + step + step
    s, t = r + step, r + step + step
    for i in range(n):
        u, v, w, x, y = pixels[p + i], pixels[q + i], pixels[r + i], pixels[s + i], pixels[t + i]
        sums[i] += ((a0 * u + a1 * v) + (a2 * w + a3 * x)) + a4 * y


@njit(cache=True, nogil=True)
def _add_three(
    pixels: np.ndarray, p: np.uint64, step: np.uint64, taps: np.ndarray, n: np.uint64,
    sums: np.ndarray,
) -> None:  # fmt: skip
    a0, a1, a2 = taps[0], taps[1], taps[2]
    q, r = p + step, p + step + step
    for i in range(n):
        u, v, w = pixels[p + i], pixels[q + i], pixels[r + i]
        sums[i] += (a0 * u + a1 * v) + a2 * w


@njit(cache=True, nogil=True)
def _respond(
    planes: Planes, first: int, n: int, taps: Taps, start: int, biases: np.ndarray,
    sums: np.ndarray,
) -> None:  # fmt: skip
    """Write the responses of four maps, or of one, as there are biases, at ``n`` positions.

    ``first`` is the first pixel below the first position, ``start`` the first tap of the maps;
    those of a map are ``PART`` floats after those of the one before.
    """
    together, count, step = len(biases), np.uint64(n), np.uint64(planes.column)
    for m in range(together):
        sums[m * PART : m * PART + n] = biases[m]
    at = start
    for c in range(taps.channels):
        for y in range(taps.rows):
            x = 0
            while x < taps.rows:
                pixel = np.uint64(first + c * planes.plane + y * planes.row + x * planes.column)
                taken, values = _step(taps.rows - x), taps.values[at:]
                if together == 4 and taken == 5:
                    _add_five_to_four(planes.pixels, pixel, step, values, count, sums)
                elif together == 4:
                    _add_three_to_four(planes.pixels, pixel, step, values, count, sums)
                elif taken == 5:
                    _add_five(planes.pixels, pixel, step, values, count, sums)
                else:
                    _add_three(planes.pixels, pixel, step, values, count, sums)
                x, at = x + taken, at + taken * together


@njit(cache=True, nogil=True)
def _raise(
    values: np.ndarray, others: np.ndarray, p: np.uint64, n: np.uint64, out: np.ndarray
) -> None:
    """Write the larger of a value and another from ``p`` on, at least 0, ``n`` times."""
    for i in range(n):
        out[i] = max(max(values[i], others[i + p]), np.float32(0))


@njit(cache=True, nogil=True)
def _raise_with_places(
    others: np.ndarray, p: np.uint64, n: np.uint64, place: np.int32,
    highest: np.ndarray, where: np.ndarray,
) -> None:  # fmt: skip
    """Raise ``highest`` to others from ``p`` on, and write ``place`` where these are larger."""
    for i in range(n):
        u, v, before = highest[i], others[i + p], where[i]
        highest[i] = v if v > u else u
        where[i] = place if v > u else before


@njit(cache=True, nogil=True)
def _write(values: np.ndarray, cells: Cells, out: np.ndarray) -> None:
    """Write the values at the first positions of all cells to ``out`` (n, rows, columns)."""
    for y in range(out.shape[1]):
        for x in range(out.shape[2]):
            cell = values[y * cells.pool * cells.line + x * cells.pool * cells.wide :]
            for i in range(out.shape[0]):
                out[i, y, x] = cell[i]


@njit(cache=True, nogil=True)
def _highest(sums: np.ndarray, cells: Cells, scratch: Scratch, out: np.ndarray) -> None:
    """Write the maxima with 0 over cells of one map's responses to ``out`` (n, rows, columns).

    First over the rows of cells, then over columns, both at every position: each step is one over
    contiguous floats.
    """
    best, highest, end = scratch.best, scratch.highest, cells.pool - 1
    used = ((out.shape[1] - 1) * cells.line + out.shape[2] * cells.wide) * cells.pool
    n, line = np.uint64(used), np.uint64(cells.line)
    _raise(sums, sums, np.uint64(end) * line, n, best)
    for dy in range(1, end):
        _raise(best, sums, np.uint64(dy) * line, n, best)
    n, wide = np.uint64(used - end * cells.wide), np.uint64(cells.wide)
    _raise(best, best, np.uint64(end) * wide, n, highest)
    for dx in range(1, end):
        _raise(highest, best, np.uint64(dx) * wide, n, highest)
    _write(highest, cells, out)


@njit(cache=True, nogil=True)
def _highest_and_places(
    sums: np.ndarray, cells: Cells, scratch: Scratch, out: np.ndarray, seen: np.ndarray
) -> None:
    """Write maxima as :func:`_highest` does, and where they are to ``seen``; −1 where none is.

    Of equal ones the first counts.
    """
    highest, where, pool = scratch.highest, scratch.where, cells.pool
    used = ((out.shape[1] - 1) * cells.line + out.shape[2] * cells.wide) * pool
    used -= (pool - 1) * cells.wide
    highest[:used], where[:used] = np.float32(0), np.int32(-1)
    for dy in range(pool):
        for dx in range(pool):
            p, place = np.uint64(dy * cells.line + dx * cells.wide), np.int32(dy * pool + dx)
            _raise_with_places(sums, p, np.uint64(used), place, highest, where)
    _write(highest, cells, out)
    _write(where, cells, seen)


@njit(cache=True, nogil=True)
def _maps_of_part(
    planes: Planes, first: int, cells: Cells, taps: Taps, biases: np.ndarray, sums: np.ndarray,
    scratch: Scratch, out: np.ndarray, seen: np.ndarray,
) -> None:  # fmt: skip
    """Write the maps of a few images in a part of all cells, four maps at once."""
    _, rows, cols, n_maps = out.shape
    size, m = taps.channels * taps.rows * taps.columns, 0
    while m < n_maps:
        last = m + 4 if m + 4 <= n_maps else m + 1
        n, chosen = cols * cells.pool * cells.wide, biases[m:last]
        if cells.line == planes.row:
            n += (rows * cells.pool - 1) * cells.line
            _respond(planes, first, n, taps, m * size, chosen, sums)
        else:
            for dy in range(cells.pool):
                begin = first + dy * planes.row
                _respond(planes, begin, n, taps, m * size, chosen, sums[dy * cells.line :])
        for k in range(m, last):
            of_map = sums[(k - m) * PART :]
            if seen.size:
                _highest_and_places(of_map, cells, scratch, out[..., k], seen[..., k])
            else:
                _highest(of_map, cells, scratch, out[..., k])
        m = last


@njit(cache=True, nogil=True)
def _maps_of_few(
    images: np.ndarray, wide: int, taps: Taps, biases: np.ndarray, pad: int, pool: int,
    out: np.ndarray, seen: np.ndarray,
) -> None:  # fmt: skip
    """Write the maps of up to ``wide`` images, part by part of the responses."""
    planes = _planes(images, pad, wide, taps.columns - taps.rows)
    h, w = out.shape[1], out.shape[2]
    sums = _aligned(4 * PART)
    scratch = Scratch(
        np.empty(PART, np.float32), np.empty(PART, np.float32), np.empty(PART, np.int32)
    )
    # Rows of an image alone follow each other; those of images side by side are long enough.
    together = (PART - w * pool + planes.row) // (pool * planes.row) if wide == 1 else 0
    rows, cols = max(1, together), w if together else min(w, PART // (pool * pool * wide))
    for y in range(0, h, rows):
        for x in range(0, w, cols):
            part = out[:, y : y + rows, x : x + cols]
            places = seen[:, y : y + rows, x : x + cols] if seen.size else seen
            line = planes.row if together else part.shape[2] * pool * wide
            first = y * pool * planes.row + x * pool * wide
            _maps_of_part(planes, first, Cells(pool, wide, line), taps, biases, sums, scratch,
                          part, places)  # fmt: skip


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
    images : ndarray of shape (n, H, W, C), uint8 or float32
    templates : ndarray of shape (n_maps, q, q, C), float32
    biases : ndarray of shape (n_maps,), float32
    pad, pool : int
        Zero pixels around the image, and the side of a cell.
    out : ndarray of shape (n, h, w, n_maps), float32
    seen : ndarray of shape (n, h, w, n_maps), int8, or (0, 0, 0, 0)
        Where each maximum is in its cell, row · pool + column; −1 where the map is zero. Not
        written when empty.
    """
    taps, n, first = _taps(templates), len(images), 0
    while first < n:
        wide = WIDE if n - first >= FEW else 1
        last = min(n, first + wide)
        places = seen[first:last] if seen.size else seen
        _maps_of_few(images[first:last], wide, taps, biases, pad, pool, out[first:last], places)
        first = last


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
