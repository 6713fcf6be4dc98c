"""The kernel of chosen patch features: what they need and no more, of one image or sixteen.

Images lie side by side, innermost everywhere: of sixteen images every step is one over whole
vectors. Of one image steps would be short, so that each window is read from a strip of the image as
high as it is, and its rows are computed in one run, with what lies between them. A feature's bits
are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.patches.kernels import raise_to, raise_to_rows
from visionshare.generators.patches.record_kernels import margin, pixel_unit, unpacked
from visionshare.generators.patches.tables import Masks


class Planes(NamedTuple):
    """Pixels from the first that a window reads, floats of a plane and of a row, and images."""

    pixels: np.ndarray
    plane: int
    row: int
    wide: int


class Run(NamedTuple):
    """Runs of responses that are computed together: how many, and floats of each."""

    n: int
    length: int


class Window(NamedTuple):
    """First row and column of the positions of responses, and floats from row to row."""

    top: int
    left: int
    row: int


class Scratch(NamedTuple):
    """Buffers of one block of images: maxima over rows, over all, and the columns of those."""

    peaks: np.ndarray
    best: np.ndarray
    column: np.ndarray


@njit(cache=True, nogil=True)
def _copy_strips(
    images: np.ndarray,
    strips: np.ndarray,
    margins: tuple[int, int],
    height: int,
    wide: int,
    out: np.ndarray,
) -> None:
    """Write vertical strips of padded images, channel by channel, into planes of zeros."""
    images = borrowed(images)
    out = borrowed(out)
    n, H, W, channels = images.shape
    unit = pixel_unit(images)
    for s in range(strips.shape[0]):
        # Column x of a strip is column x − shift of the image.
        width = strips[s, 1]
        shift = margins[1] - strips[s, 0]
        first = max(0, shift)
        last = min(width, W + shift)
        for c in range(channels):
            plane = strips[s, 2] + c * height * width
            for v in range(H):
                row = plane + (v + margins[0]) * width
                for i in range(n):
                    values = images[i, v, first - shift : last - shift, c]
                    to = out[(row + first) * wide + i : (row + last) * wide : wide]
                    for x in range(values.shape[0]):
                        to[x] = np.float32(values[x]) * unit


# A sum takes seven taps at a time, or four and the rest, in this order. Each tap has a slice:
# indices that begin with 0 are never negative, and loops become vectors.
@njit(cache=True, nogil=True)
def _add_four(pixels: np.ndarray, wide: int, taps: np.ndarray, out: np.ndarray) -> None:
    """Add four neighboring taps of a template at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    one = pixels[wide:]
    two = pixels[2 * wide :]
    three = pixels[3 * wide :]
    for i in range(out.shape[0]):
        a = pixels[i]
        b = one[i]
        c = two[i]
        d = three[i]
        out[i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)


@njit(cache=True, nogil=True)
def _add_seven(pixels: np.ndarray, wide: int, taps: np.ndarray, out: np.ndarray) -> None:
    """Add seven neighboring taps of a template at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    w4 = taps[4]
    w5 = taps[5]
    w6 = taps[6]
    one = pixels[wide:]
    two = pixels[2 * wide :]
    three = pixels[3 * wide :]
    four = pixels[4 * wide :]
    five = pixels[5 * wide :]
    six = pixels[6 * wide :]
    for i in range(out.shape[0]):
        a = pixels[i]
        b = one[i]
        c = two[i]
        d = three[i]
        e = four[i]
        f = five[i]
        g = six[i]
        out[i] = (out[i] + ((w0 * a + w1 * b) + (w2 * c + w3 * d))) + ((w4 * e + w5 * f) + w6 * g)


@njit(cache=True, nogil=True)
def _add_row(pixels: np.ndarray, wide: int, q: int, taps: np.ndarray, out: np.ndarray) -> None:
    """Add a row of a template's taps at neighboring positions."""
    dx = 0
    while dx < q:
        if 4 < q - dx <= 7:
            _add_seven(pixels[dx * wide :], wide, taps[dx:], out)
            return
        _add_four(pixels[dx * wide :], wide, taps[dx:], out)
        dx += 4


@njit(cache=True, nogil=True)
def _respond(planes: Planes, taps: np.ndarray, run: Run, out: np.ndarray) -> None:
    """Write the responses of a template (C, q, n_taps) on a window."""
    q = taps.shape[1]
    pixels = borrowed(planes.pixels)
    taps = borrowed(taps)
    out = borrowed(out)
    out[: run.n * run.length] = np.float32(0)
    for y in range(run.n):
        row = out[y * run.length : (y + 1) * run.length]
        for c in range(taps.shape[0]):
            for dy in range(q):
                start = pixels[c * planes.plane + (y + dy) * planes.row :]
                _add_row(start, planes.wide, q, taps[c, dy], row)


@njit(cache=True, nogil=True)
def _highest(peak: np.ndarray, col_mask: np.ndarray, best: np.ndarray, column: np.ndarray) -> None:
    """Write the maximum over columns of peak × mask, and the first column that has it."""
    wide = best.shape[0]
    for i in range(wide):
        best[i] = np.float32(0)
        column[i] = -1
    for x in range(col_mask.shape[0]):
        values = peak[x * wide : (x + 1) * wide]
        weight = col_mask[x]
        for i in range(wide):
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
    size = window.row
    wide = scratch.best.shape[0]
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
        peak = peaks[: (right - left) * wide]
        peak[:] = np.float32(0)
        begin = (top - window.top) * size + (left - window.left) * wide
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
                offset = column[i] * wide + i
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
    wide: int,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write the chosen features of up to ``wide`` images."""
    strips, windows, features = unpacked(packed)
    _, channels, q, n_taps = taps.shape
    rows = masks.rows.shape[1]
    cols = masks.cols.shape[1]
    height = rows + q - 1
    margins = margin(images.shape[1], rows, q), margin(images.shape[2], cols, q)
    # Taps filled up with zeros read a little past the last pixel.
    pixels = np.zeros((strips[:, 1].sum() * height * channels + n_taps) * wide, np.float32)
    _copy_strips(images, strips, margins, height, wide, pixels)
    largest = 0
    for t in range(windows.shape[0]):
        columns = windows[t, 4] if wide > 1 else strips[windows[t, 0], 1]
        largest = max(largest, windows[t, 2] * columns * wide)
    response = np.empty(largest, np.float32)
    scratch = Scratch(
        np.empty(cols * wide, np.float32), np.empty(wide, np.float32), np.empty(wide, np.int32)
    )
    for t in range(windows.shape[0]):
        strip = windows[t, 0]
        y0 = windows[t, 1]
        n_rows = windows[t, 2]
        x0 = windows[t, 3]
        width = strips[strip, 1]
        start = strips[strip, 2] + y0 * width + x0 - strips[strip, 0]
        planes = Planes(pixels[start * wide :], height * width * wide, width * wide, wide)
        if wide > 1:
            line = windows[t, 4] * wide
            run = Run(n_rows, line)
        else:
            line = width
            run = Run(1, (n_rows - 1) * width + windows[t, 4])
        _respond(planes, taps[t], run, response)
        served = features[windows[t, 5] : windows[t, 6]]
        _pool(response, Window(y0, x0, line), served, masks, scratch, out, maxima)


@njit(cache=True, nogil=True)
def chosen_features(
    images: np.ndarray,
    packed: np.ndarray,
    taps: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    wide: int,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write chosen features: a template once for all its masks, only where they reach."""
    # images: (n, H, W, C), uint8 or float32
    # packed: the tables for ``wide`` images side by side
    # taps: (n_windows, C, q, n_taps), float32
    # row_masks, col_masks: (n_masks, rows) and (n_masks, cols), float32
    # wide: images side by side, 1 or 16
    # out: (n, n_features), float32
    # maxima: (n, n_features), int32, or (0, 0)
    for start in range(0, images.shape[0], wide):
        end = min(start + wide, images.shape[0])
        positions = maxima[start:end] if maxima.size else maxima
        masks = Masks(row_masks, col_masks)
        _evaluate_block(images[start:end], packed, taps, masks, wide, out[start:end], positions)
