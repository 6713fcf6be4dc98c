"""The kernel of patch features: what chosen ones need and no more, of one image or sixteen.

Images lie side by side, innermost everywhere: of sixteen images every step is one over whole
vectors. Of one image steps would be short, so that each window is read from a strip of the image as
high as it is, and its rows are computed in one run, with what lies between them. A feature's bits
are the same, whatever else is computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.templates.intrinsics import (
    LANES,
    POSITIONS,
    WIDEST,
    respond_in_vectors,
)

# Sums that are in registers at once, of whole vectors.
_SUMS = POSITIONS * WIDEST
# The most lanes of vectors at once.
_MOST = 128


class Tables(NamedTuple):
    """The work of one evaluation, all int64."""

    #: First column, columns, and where it begins.
    strips: np.ndarray
    #: Windows of one rectangle: strip, first row, rows, first column, columns; first window, end.
    groups: np.ndarray
    #: First feature of each window, and the end.
    windows: np.ndarray
    #: Row mask, top, end, column mask, left, right, name; columns that its row mask is needed for.
    features: np.ndarray

    def packed(self) -> np.ndarray:
        """Return one vector: the numbers of rows, then the tables one after the other."""
        # A call of a numba kernel from Python costs time for each argument, most for a tuple.
        rows = [np.array([len(table) for table in self])]
        return np.concatenate(rows + [table.ravel() for table in self]).astype(np.int64)


class Masks(NamedTuple):
    """Row masks and column masks, each of shape (n_masks, positions), float32."""

    rows: np.ndarray
    cols: np.ndarray


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
    shifted: np.ndarray


@njit(cache=True, nogil=True)
def scratch_of(cols: int, wide: int, with_columns: bool) -> Scratch:
    """Return the buffers for ``wide`` images, or templates, side by side."""
    return Scratch(
        np.empty(cols * wide, np.float32),
        np.empty(wide, np.float32),
        np.empty(wide if with_columns else 0, np.int32),
        np.empty(wide, np.float32),
    )


@njit(cache=True, nogil=True)
def margin(side: int, positions: int, q: int) -> int:
    """Return the zero pixels on each end of a side that q × q patches have positions on."""
    return (positions + q - 1 - side) // 2


@njit(cache=True, nogil=True)
def unpacked(packed: np.ndarray) -> Tables:
    """Return the tables that :meth:`Tables.packed` put into one vector; nothing is copied."""
    groups = 4 + packed[0] * 3
    windows = groups + packed[1] * 7
    features = windows + packed[2]
    return Tables(
        packed[4:groups].reshape((packed[0], 3)),
        packed[groups:windows].reshape((packed[1], 7)),
        packed[windows:features],
        packed[features:].reshape((packed[3], 9)),
    )


@njit(cache=True, nogil=True)
def copy_strips(
    images: np.ndarray,
    strips: np.ndarray,
    margins: tuple[int, int],
    height: int,
    wide: int,
    out: np.ndarray,
) -> None:
    """Write vertical strips of padded images, channel by channel, into planes of zeros."""
    images = uncounted(images)
    out = uncounted(out)
    n, H, W, channels = images.shape
    unit = np.float32(1 / 255) if images.itemsize == 1 else np.float32(1)
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


@njit(cache=True, nogil=True)
def _lanes(left: int, n: int) -> int:
    """Return how many of the sums that are left are computed at once for ``n`` templates."""
    width = _MOST
    while width * n > _SUMS or (width > LANES and width > left):
        width //= 2
    return width


@njit(cache=True, nogil=True)
def at_once(left: int) -> int:
    """Return how many templates, or positions, are computed at once where some are left."""
    if left >= POSITIONS:
        return POSITIONS
    return 4 if left >= 4 else min(left, 2)


@njit(cache=True, nogil=True)
def _respond(
    planes: Planes,
    taps: np.ndarray,
    starts: np.ndarray,
    n: int,
    run: Run,
    out: np.ndarray,
    size: int,
) -> None:
    """Write the responses of ``n`` templates (C, q, q) on a window, ``size`` floats apart."""
    channels, q = taps.shape[1:3]
    pixels = uncounted(planes.pixels)
    flat = uncounted(taps.reshape(-1))
    starts = uncounted(starts)
    out = uncounted(out)
    for t in range(n):
        out[t * size : (t + 1) * size] = np.float32(0)
    for y in range(run.n):
        lane = 0
        while lane < run.length:
            width = _lanes(run.length - lane, n)
            at = y * planes.row + lane
            to = y * run.length + lane
            for c in range(channels):
                respond_in_vectors(
                    flat[c * q * q :], starts, 0, n, q, q, q,
                    pixels, c * planes.plane + at, planes.row, planes.wide, width,
                    out, to, size, out, to, size,
                )  # fmt: skip
            lane += width


@njit(cache=True, nogil=True)
def _raise_to(values: np.ndarray, weight: np.float32, peak: np.ndarray) -> None:
    """Raise ``peak`` to weighted values, element by element."""
    for i in range(peak.shape[0]):
        v = values[i] * weight
        u = peak[i]
        peak[i] = v if v > u else u


@njit(cache=True, nogil=True)
def _raise_to_rows(values: np.ndarray, length: int, weights: np.ndarray, peak: np.ndarray) -> None:
    """Raise ``peak`` to four weighted rows ``length`` apart, reading and writing it once."""
    w0 = weights[0]
    w1 = weights[1]
    w2 = weights[2]
    w3 = weights[3]
    one = values[length:]
    two = values[2 * length :]
    three = values[3 * length :]
    for i in range(peak.shape[0]):
        a = values[i] * w0
        b = one[i] * w1
        c = two[i] * w2
        d = three[i] * w3
        a = a if a > b else b
        c = c if c > d else d
        a = a if a > c else c
        u = peak[i]
        peak[i] = a if a > u else u


@njit(cache=True, nogil=True)
def _highest(peak: np.ndarray, col_mask: np.ndarray, best: np.ndarray, column: np.ndarray) -> None:
    """Write the maximum over columns of peak × mask; the first column that has it, if asked."""
    wide = best.shape[0]
    best[:] = np.float32(0)
    column[:] = -1
    for x in range(col_mask.shape[0]):
        values = peak[x * wide : (x + 1) * wide]
        weight = col_mask[x]
        if column.shape[0] == 0:
            _raise_to(values, weight, best)
            continue
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
def to_half(values: np.ndarray, shifted: np.ndarray, out: np.ndarray) -> None:
    """Write the float16 bits nearest to float32 values ≥ 0, ties to even."""
    # Adding one half lines the bits up so that the adder itself rounds a subnormal.
    for i in range(values.shape[0]):
        shifted[i] = values[i] + np.float32(0.5)
    bits = values.view(np.uint32)
    small = shifted.view(np.uint32)
    for i in range(out.shape[0]):
        u = bits[i]
        odd = (u >> np.uint32(13)) & np.uint32(1)
        h = (u - np.uint32(0x38000000) + np.uint32(0x0FFF) + odd) >> np.uint32(13)
        h = small[i] - np.uint32(0x3F000000) if u < np.uint32(0x38800000) else h
        h = np.uint32(0x7C00) if u >= np.uint32(0x477FF000) else h
        out[i] = np.uint16(h)


@njit(cache=True, nogil=True)
def pool(
    response: np.ndarray,
    window: Window,
    features: np.ndarray,
    masks: Masks,
    scratch: Scratch,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write the features of one template's responses on a window, and where they are."""
    # The maximum over rows comes first: it is that of all features of one row mask.
    response = uncounted(response)
    features = uncounted(features)
    out = uncounted(out)
    maxima = uncounted(maxima)
    rows = uncounted(masks.rows)
    cols = uncounted(masks.cols)
    peaks = uncounted(scratch.peaks)
    best = uncounted(scratch.best)
    column = uncounted(scratch.column)
    wide = best.shape[0]
    for f in range(features.shape[0]):
        a = features[f, 0]
        top = features[f, 1]
        end = features[f, 2]
        left = features[f, 4]
        right = features[f, 5]
        name = features[f, 6]
        first = features[f, 7]
        begin = (top - window.top) * window.row + (first - window.left) * wide
        if f == 0 or a != features[f - 1, 0]:
            peak = peaks[: (features[f, 8] - first) * wide]
            peak[:] = np.float32(0)
            offset = begin
            y = top
            while y + 4 <= end:
                _raise_to_rows(response[offset:], window.row, rows[a, y : y + 4], peak)
                offset = offset + 4 * window.row
                y = y + 4
            for row in range(y, end):
                _raise_to(response[offset : offset + peak.shape[0]], rows[a, row], peak)
                offset += window.row
        shift = (left - first) * wide
        _highest(peaks[shift:], cols[features[f, 3], left:right], best, column)
        if out.itemsize == 2:
            to_half(best, scratch.shifted, out[name])
        else:
            for i in range(out.shape[1]):
                out[name, i] = best[i]
        for i in range(maxima.shape[0]):
            maxima[i, name] = -1
            if column[i] >= 0:
                at = shift + column[i] * wide + i
                y = top + _first_row(
                    response[begin + at :], window.row, rows[a, top:end], peaks[at]
                )
                maxima[i, name] = y * cols.shape[1] + left + column[i]


@njit(cache=True, nogil=True)
def _evaluate_block(
    images: np.ndarray,
    tables: Tables,
    taps: np.ndarray,
    masks: Masks,
    wide: int,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write the features of up to ``wide`` images."""
    strips, groups, windows, features = tables
    channels, q = taps.shape[1:3]
    rows = masks.rows.shape[1]
    cols = masks.cols.shape[1]
    height = rows + q - 1
    margins = margin(images.shape[1], rows, q), margin(images.shape[2], cols, q)
    pixels = np.zeros(strips[:, 1].sum() * height * channels * wide + LANES, np.float32)
    copy_strips(images, strips, margins, height, wide, pixels)
    most = 0
    for g in range(groups.shape[0]):
        columns = groups[g, 4] if wide > 1 else strips[groups[g, 0], 1]
        n = min(POSITIONS, groups[g, 6] - groups[g, 5])
        most = max(most, n * (groups[g, 2] * columns * wide + LANES))
    responses = np.empty(most, np.float32)
    starts = np.arange(taps.shape[0]) * (channels * q * q)
    scratch = scratch_of(cols, wide, maxima.size > 0)
    for g in range(groups.shape[0]):
        strip = groups[g, 0]
        y0 = groups[g, 1]
        n_rows = groups[g, 2]
        x0 = groups[g, 3]
        n_cols = groups[g, 4]
        width = strips[strip, 1]
        start = strips[strip, 2] + y0 * width + x0 - strips[strip, 0]
        planes = Planes(pixels[start * wide :], height * width * wide, width * wide, wide)
        if wide > 1:
            line = n_cols * wide
            run = Run(n_rows, line)
        else:
            line = width
            run = Run(1, (n_rows - 1) * width + n_cols)
        size = run.n * run.length + LANES
        # Templates of one window are computed together.
        begin = groups[g, 5]
        while begin < groups[g, 6]:
            n = at_once(groups[g, 6] - begin)
            _respond(planes, taps, starts[begin:], n, run, responses, size)
            for t in range(n):
                served = features[windows[begin + t] : windows[begin + t + 1]]
                response = responses[t * size : (t + 1) * size]
                pool(response, Window(y0, x0, line), served, masks, scratch, out, maxima)
            begin += n


@njit(cache=True, nogil=True)
def patch_features(
    images: np.ndarray,
    packed: np.ndarray,
    taps: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    wide: int,
    out: np.ndarray,
    first: int,
    maxima: np.ndarray,
) -> None:
    """Write features: a template once for all its masks, only where they reach."""
    # images: (n, H, W, C), uint8 or float32
    # packed: the tables for ``wide`` images side by side
    # taps: (n_windows, C, q, q), float32
    # row_masks, col_masks: (n_masks, rows) and (n_masks, cols), float32
    # wide: images side by side, 1 or 16
    # out: (n_features, all images), float32, or uint16 for float16 bits
    # first: the column of out for the first image; a part of out would be of another type
    # maxima: (n, n_features), int32, or (0, 0)
    tables = unpacked(packed)
    masks = Masks(row_masks, col_masks)
    for start in range(0, images.shape[0], wide):
        end = min(start + wide, images.shape[0])
        positions = maxima[start:end] if maxima.size else maxima
        columns = out[:, first + start : first + end]
        _evaluate_block(images[start:end], tables, taps, masks, wide, columns, positions)
