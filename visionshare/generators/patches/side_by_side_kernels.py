"""The kernel of chosen patch features of many images: sixteen side by side, innermost everywhere.

Every step is one over contiguous floats, a whole number of vectors: nothing is computed between
rows of a window, as :mod:`visionshare.generators.patches.restricted_kernels` has to. The
bits are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.patches.kernels import raise_to, raise_to_rows
from visionshare.generators.patches.record_kernels import margin, pixel_unit, unpacked
from visionshare.generators.patches.tables import Masks

__all__ = ["chosen_features_side_by_side"]

WIDE = 16


class Planes(NamedTuple):
    """Pixels from the first that a window reads, floats of a plane, and of a row of pixels."""

    pixels: np.ndarray
    plane: int
    row: int


class Window(NamedTuple):
    """First row and column of the positions of responses, and floats of a row of them."""

    top: int
    left: int
    size: int


class Scratch(NamedTuple):
    """Buffers of one block of images: maxima over rows, over all, and the columns of those."""

    peaks: np.ndarray
    best: np.ndarray
    column: np.ndarray


@njit(cache=True, nogil=True)
def _interleave(
    images: np.ndarray, pad_y: int, pad_x: int, height: int, width: int, out: np.ndarray
) -> None:
    """Write up to sixteen images (n, H, W, C) into planes (C, height, width, 16) of zeros."""
    n, H, W, channels = images.shape
    unit = pixel_unit(images)
    for c in range(channels):
        for y in range(H):
            for x in range(W):
                offset = ((c * height + y + pad_y) * width + x + pad_x) * WIDE
                for i in range(n):
                    out[offset + i] = np.float32(images[i, y, x, c]) * unit


# A sum takes four taps at a time, and the rest: in the same order as the kernel of few images does.
@njit(cache=True, nogil=True)
def _add_four(pixels: np.ndarray, taps: np.ndarray, out: np.ndarray) -> None:
    """Add four neighboring taps of a template at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    for i in range(out.shape[0]):
        a = pixels[i]
        b = pixels[i + WIDE]
        c = pixels[i + 2 * WIDE]
        d = pixels[i + 3 * WIDE]
        out[i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)


@njit(cache=True, nogil=True)
def _add_seven(pixels: np.ndarray, taps: np.ndarray, out: np.ndarray) -> None:
    """Add seven neighboring taps of a template at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    w4 = taps[4]
    w5 = taps[5]
    w6 = taps[6]
    for i in range(out.shape[0]):
        a = pixels[i]
        b = pixels[i + WIDE]
        c = pixels[i + 2 * WIDE]
        d = pixels[i + 3 * WIDE]
        e = pixels[i + 4 * WIDE]
        f = pixels[i + 5 * WIDE]
        g = pixels[i + 6 * WIDE]
        out[i] = (out[i] + ((w0 * a + w1 * b) + (w2 * c + w3 * d))) + ((w4 * e + w5 * f) + w6 * g)


@njit(cache=True, nogil=True)
def _add_four_of_two(
    pixels: np.ndarray, taps: np.ndarray, others: np.ndarray, out: np.ndarray, other: np.ndarray
) -> None:
    """Add four neighboring taps of each of two templates at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    v0 = others[0]
    v1 = others[1]
    v2 = others[2]
    v3 = others[3]
    for i in range(out.shape[0]):
        a = pixels[i]
        b = pixels[i + WIDE]
        c = pixels[i + 2 * WIDE]
        d = pixels[i + 3 * WIDE]
        out[i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
        other[i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)


@njit(cache=True, nogil=True)
def _add_seven_of_two(
    pixels: np.ndarray, taps: np.ndarray, others: np.ndarray, out: np.ndarray, other: np.ndarray
) -> None:
    """Add seven neighboring taps of each of two templates at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    w4 = taps[4]
    w5 = taps[5]
    w6 = taps[6]
    v0 = others[0]
    v1 = others[1]
    v2 = others[2]
    v3 = others[3]
    v4 = others[4]
    v5 = others[5]
    v6 = others[6]
    for i in range(out.shape[0]):
        a = pixels[i]
        b = pixels[i + WIDE]
        c = pixels[i + 2 * WIDE]
        d = pixels[i + 3 * WIDE]
        e = pixels[i + 4 * WIDE]
        f = pixels[i + 5 * WIDE]
        g = pixels[i + 6 * WIDE]
        out[i] = (out[i] + ((w0 * a + w1 * b) + (w2 * c + w3 * d))) + ((w4 * e + w5 * f) + w6 * g)
        u = other[i] + ((v0 * a + v1 * b) + (v2 * c + v3 * d))
        other[i] = u + ((v4 * e + v5 * f) + v6 * g)


@njit(cache=True, nogil=True)
def _add_row(pixels: np.ndarray, q: int, taps: np.ndarray, out: np.ndarray) -> None:
    """Add a row of a template's taps at neighboring positions."""
    dx = 0
    while dx < q:
        if 4 < q - dx <= 7:
            _add_seven(pixels[dx * WIDE :], taps[dx:], out)
            return
        _add_four(pixels[dx * WIDE :], taps[dx:], out)
        dx += 4


@njit(cache=True, nogil=True)
def _add_row_of_two(
    pixels: np.ndarray,
    q: int,
    taps: np.ndarray,
    others: np.ndarray,
    out: np.ndarray,
    other: np.ndarray,
) -> None:
    """Add a row of taps of each of two templates: pixels are read once for both."""
    dx = 0
    while dx < q:
        if 4 < q - dx <= 7:
            _add_seven_of_two(pixels[dx * WIDE :], taps[dx:], others[dx:], out, other)
            return
        _add_four_of_two(pixels[dx * WIDE :], taps[dx:], others[dx:], out, other)
        dx += 4


@njit(cache=True, nogil=True)
def _respond(
    planes: Planes,
    taps: np.ndarray,
    t: int,
    u: int,
    size: int,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Write the responses of template t, and of u where that is not −1, on a window."""
    # A row of the window has ``size`` floats in the responses.
    q = taps.shape[2]
    pixels = borrowed(planes.pixels)
    taps = borrowed(taps)
    first = borrowed(first)
    second = borrowed(second)
    first[:] = np.float32(0)
    second[:] = np.float32(0)
    for y in range(first.shape[0] // size):
        one = first[y * size : (y + 1) * size]
        two = second[y * size : (y + 1) * size]
        for c in range(taps.shape[1]):
            for dy in range(q):
                start = pixels[c * planes.plane + (y + dy) * planes.row :]
                if u < 0:
                    _add_row(start, q, taps[t, c, dy], one)
                else:
                    _add_row_of_two(start, q, taps[t, c, dy], taps[u, c, dy], one, two)


@njit(cache=True, nogil=True)
def _highest(peak: np.ndarray, col_mask: np.ndarray, best: np.ndarray, column: np.ndarray) -> None:
    """Write the maximum over columns of peak × mask, and the first column that has it."""
    for i in range(WIDE):
        best[i] = np.float32(0)
        column[i] = -1
    for x in range(col_mask.shape[0]):
        values = peak[x * WIDE : (x + 1) * WIDE]
        weight = col_mask[x]
        for i in range(WIDE):
            v = values[i] * weight
            above = v > best[i]
            best[i] = v if above else best[i]
            column[i] = x if above else column[i]


@njit(cache=True, nogil=True)
def _first_row(response: np.ndarray, size: int, row_mask: np.ndarray, peak: np.float32) -> int:
    """Return the first row whose weighted response, every ``size`` floats one, is the maximum."""
    for y in range(row_mask.shape[0]):
        if response[y * size] * row_mask[y] == peak:
            return y
    return -1


@njit(cache=True, nogil=True)
def _pool(
    response: np.ndarray,
    window: Window,
    features: np.ndarray,
    masks: Masks,
    scratch: Scratch,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write the features of one template's response on a window."""
    response = borrowed(response)
    features = borrowed(features)
    peaks = borrowed(scratch.peaks)
    rows = borrowed(masks.rows)
    cols = borrowed(masks.cols)
    size = window.size
    best = borrowed(scratch.best)
    column = borrowed(scratch.column)
    for f in range(features.shape[0]):
        a = features[f, 0]
        top = features[f, 1]
        end = features[f, 2]
        b = features[f, 3]
        left = features[f, 4]
        right = features[f, 5]
        name = features[f, 6]
        peak = peaks[: (right - left) * WIDE]
        peak[:] = np.float32(0)
        begin = (top - window.top) * size + (left - window.left) * WIDE
        offset = begin
        y = top
        while y + 4 <= end:
            w = rows[a, y : y + 4]
            raise_to_rows(response[offset:], size, w[0], w[1], w[2], w[3], peak)
            offset = offset + 4 * size
            y = y + 4
        for row in range(y, end):
            raise_to(response[offset : offset + peak.shape[0]], rows[a, row], peak)
            offset += size
        _highest(peak, cols[b, left:right], best, column)
        for i in range(out.shape[0]):
            out[i, name] = best[i]
        for i in range(maxima.shape[0]):
            maxima[i, name] = -1
            if column[i] >= 0:
                offset = column[i] * WIDE + i
                first_row = _first_row(
                    response[begin + offset :], size, rows[a, top:end], peak[offset]
                )
                position = (top + first_row) * cols.shape[1] + left + column[i]
                maxima[i, name] = position


@njit(cache=True, nogil=True)
def _evaluate_block(
    images: np.ndarray,
    packed: np.ndarray,
    taps: np.ndarray,
    masks: Masks,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write the chosen features of up to sixteen images."""
    _, windows, pairs, features = unpacked(packed)
    _, channels, q, n_taps = taps.shape
    rows = masks.rows.shape[1]
    cols = masks.cols.shape[1]
    height = rows + q - 1
    width = cols + q - 1
    row = width * WIDE
    largest = 0
    for t in range(windows.shape[0]):
        largest = max(largest, windows[t, 2] * windows[t, 4] * WIDE)
    plane = height * row
    # Taps filled up with zeros read a little past the last pixel.
    pixels = np.zeros(channels * plane + n_taps * WIDE, np.float32)
    one = np.empty(largest, np.float32)
    two = np.empty(largest, np.float32)
    scratch = Scratch(
        np.empty(cols * WIDE, np.float32), np.empty(WIDE, np.float32), np.empty(WIDE, np.int32)
    )
    pad_y = margin(images.shape[1], rows, q)
    pad_x = margin(images.shape[2], cols, q)
    _interleave(images, pad_y, pad_x, height, width, pixels)
    for pair in range(pairs.shape[0]):
        t = pairs[pair, 0]
        u = pairs[pair, 1]
        y0 = windows[t, 1]
        n_rows = windows[t, 2]
        x0 = windows[t, 3]
        size = windows[t, 4] * WIDE
        planes = Planes(pixels[y0 * row + x0 * WIDE :], plane, row)
        area = n_rows * size
        _respond(planes, taps, t, u, size, one[:area], two[:area])
        for k in range(2):
            w = pairs[pair, k]
            if w >= 0:
                served = features[windows[w, 5] : windows[w, 6]]
                _pool(
                    one if k == 0 else two,
                    Window(y0, x0, size),
                    served,
                    masks,
                    scratch,
                    out,
                    maxima,
                )


@njit(cache=True, nogil=True)
def chosen_features_side_by_side(
    images: np.ndarray,
    packed: np.ndarray,
    taps: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write chosen features: a template once for all its masks, only where they reach."""
    # Parameters are those of ``chosen_features_alone`` of ``restricted_kernels``.
    for block in range((images.shape[0] + WIDE - 1) // WIDE):
        start = block * WIDE
        end = min(start + WIDE, images.shape[0])
        positions = maxima[start:end] if maxima.size else maxima
        _evaluate_block(
            images[start:end], packed, taps, Masks(row_masks, col_masks), out[start:end], positions
        )
