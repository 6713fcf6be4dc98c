"""Kernels of the patch family: convolution as blocked products, masks and maxima in cache.

Templates run in blocks of 16, the innermost axis of every array here: a block's product with an
image's patches is one small matrix product of a fixed shape, its responses stay in cache, and the
maxima over masked positions are passes over contiguous floats. A column's bits depend neither on
the batch of images nor on the templates evaluated beside it nor on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["BLOCK", "chosen_features", "pool_columns"]

BLOCK = 16
_IMAGES = 16


@njit(cache=True, nogil=True)
def _patches(image: np.ndarray, unit: np.float32, pad_y: int, pad_x: int, q: int,
             rows: int, cols: int, out: np.ndarray) -> None:  # fmt: skip
    """Write the patches of one image (H, W, C), zero outside, as rows of ``out``."""
    height, width, channels = image.shape
    for y in range(rows):
        for x in range(cols):
            to = out[y * cols + x]
            place = 0
            for dy in range(q):
                for dx in range(q):
                    v, u = y + dy - pad_y, x + dx - pad_x
                    inside = v >= 0 and v < height and u >= 0 and u < width
                    for c in range(channels):
                        to[place] = np.float32(image[v, u, c]) * unit if inside else np.float32(0)
                        place += 1


@njit(cache=True, nogil=True)
def _raise_to(values: np.ndarray, weight: np.float32, peak: np.ndarray) -> None:
    for i in range(peak.shape[0]):
        v = values[i] * weight
        u = peak[i]
        peak[i] = v if v > u else u


@njit(cache=True, nogil=True)
def _peaks(profile: np.ndarray, mask: np.ndarray, lo: int, hi: int, out: np.ndarray) -> None:
    """Write the maximum over x in [lo, hi) of profile × mask, for the 16 templates of a block."""
    for t in range(BLOCK):
        out[t] = np.float32(0)
    for x in range(lo, hi):
        w = mask[x]
        for t in range(BLOCK):
            v = profile[x * BLOCK + t] * w
            u = out[t]
            out[t] = v if v > u else u


@njit(cache=True, nogil=True)
def _half(value: np.float32, bits: np.ndarray, single: np.ndarray) -> np.uint16:
    """Return the float16 bits nearest to a value ≥ 0, ties to even."""
    single[0] = value
    u = bits[0]
    if u >= np.uint32(0x477FF000):
        return np.uint16(0x7C00)
    if u < np.uint32(0x38800000):
        # Adding one half lines the bits up so that the adder itself rounds a subnormal.
        single[0] = value + np.float32(0.5)
        return np.uint16(bits[0] - np.uint32(0x3F000000))
    odd = (u >> np.uint32(13)) & np.uint32(1)
    return np.uint16((u - np.uint32(0x38000000) + np.uint32(0x0FFF) + odd) >> np.uint32(13))


@njit(cache=True, nogil=True, parallel=True)
def pool_columns(
    images: np.ndarray,
    unit: np.float32,
    pad_y: int,
    pad_x: int,
    q: int,
    blocks: np.ndarray,
    row_masks: np.ndarray,
    row_spans: np.ndarray,
    col_masks: np.ndarray,
    col_spans: np.ndarray,
    grid: int,
    wanted: np.ndarray,
    out: np.ndarray,
    half: bool,
) -> None:
    """Write the columns of whole blocks of templates, each with all its masks.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
    unit : float32
        Factor of the pixels.
    pad_y, pad_x : int
        Zero pixels on each side.
    q : int
        Patch size.
    blocks : ndarray of shape (n_blocks, q·q·C, 16), float32
        Templates.
    row_masks, col_masks : ndarray of shape (widths × grid, rows) and (widths × grid, cols)
    row_spans, col_spans : ndarray of shape (widths × grid, 2), int64
        Where each mask is not zero.
    grid : int
        Masks a side.
    wanted : ndarray of int64, shape (n_blocks · 16 · masks,)
        The row of ``out`` for each column, template-major; −1 to leave it out.
    out : ndarray of shape (n_columns, n), float32, or uint16 for float16 bits
    half : bool
        Whether ``out`` holds float16 bits.
    """
    n, channels = images.shape[0], images.shape[3]
    rows, cols = row_masks.shape[1], col_masks.shape[1]
    n_blocks, n_rows = blocks.shape[0], row_masks.shape[0]
    n_masks = n_rows * grid
    for group in prange((n + _IMAGES - 1) // _IMAGES):
        patches = np.empty((rows * cols, q * q * channels), np.float32)
        responses = np.empty((rows * cols, BLOCK), np.float32)
        flat = responses.reshape(-1)
        profile = np.empty(cols * BLOCK, np.float32)
        found = np.empty(BLOCK, np.float32)
        tile = np.empty((n_blocks * BLOCK * n_masks, _IMAGES), np.float32)
        first = group * _IMAGES
        count = min(_IMAGES, n - first)
        for i in range(count):
            _patches(images[first + i], unit, pad_y, pad_x, q, rows, cols, patches)
            for b in range(n_blocks):
                np.dot(patches, blocks[b], responses)
                for a in range(n_rows):
                    profile[:] = np.float32(0)
                    for y in range(row_spans[a, 0], row_spans[a, 1]):
                        line = flat[y * cols * BLOCK : (y + 1) * cols * BLOCK]
                        _raise_to(line, row_masks[a, y], profile)
                    lowest = (a // grid) * grid
                    for c in range(grid):
                        k = lowest + c
                        _peaks(profile, col_masks[k], col_spans[k, 0], col_spans[k, 1], found)
                        for t in range(BLOCK):
                            tile[(b * BLOCK + t) * n_masks + a * grid + c, i] = found[t]
        single = np.empty(1, np.float32)
        bits = single.view(np.uint32)
        for f in range(tile.shape[0]):
            r = wanted[f]
            if r >= 0:
                for i in range(count):
                    if half:
                        out[r, first + i] = _half(tile[f, i], bits, single)
                    else:
                        out[r, first + i] = tile[f, i]


@njit(cache=True, nogil=True)
def _strips(image: np.ndarray, unit: np.float32, pad_y: int, pad_x: int, strips: np.ndarray,
            starts: np.ndarray, height: int, out: np.ndarray) -> None:  # fmt: skip
    """Copy the padded image's vertical strips, each channel a plane, one after the other."""
    H, W, channels = image.shape
    for s in range(strips.shape[0]):
        x0, width = strips[s, 0], strips[s, 1]
        for c in range(channels):
            base = starts[s] + c * height * width
            for y in range(height):
                v = y - pad_y
                for x in range(width):
                    u = x0 + x - pad_x
                    inside = v >= 0 and v < H and u >= 0 and u < W
                    value = np.float32(image[v, u, c]) * unit if inside else np.float32(0)
                    out[base + y * width + x] = value


@njit(cache=True, nogil=True)
def _add_taps(pixels: np.ndarray, taps: np.ndarray, out: np.ndarray) -> None:
    """Add four neighbouring taps of a template at every position."""
    w0, w1, w2, w3 = taps[0], taps[1], taps[2], taps[3]
    for i in range(out.shape[0]):
        out[i] += (w0 * pixels[i] + w1 * pixels[i + 1]) + (w2 * pixels[i + 2] + w3 * pixels[i + 3])


@njit(cache=True, nogil=True, parallel=True)
def chosen_features(
    images: np.ndarray,
    unit: np.float32,
    pad_y: int,
    pad_x: int,
    height: int,
    q: int,
    taps: np.ndarray,
    strips: np.ndarray,
    starts: np.ndarray,
    scratch: int,
    windows: np.ndarray,
    members: np.ndarray,
    features: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write chosen features: a template once for all its masks, only where they reach.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C)
    unit, pad_y, pad_x, q
        As in :func:`pool_columns`.
    height : int
        Height of the padded image.
    taps : ndarray of shape (n_windows, C, q, n_taps), float32
        Rows of each window's template, filled up with zeros to a multiple of four.
    strips : ndarray of shape (n_strips, 2), int64
        First column and width of the vertical strips of the padded image that templates read.
    starts : ndarray of shape (n_strips,), int64
        Where each strip begins in the scratch buffer.
    scratch : int
        Floats of the scratch buffer.
    windows : ndarray of shape (n_windows, 4), int64
        Strip, first row, rows, first position column of a template's responses.
    members : ndarray of shape (n_windows + 1,), int64
        Which rows of ``features`` belong to each window.
    features : ndarray of shape (n_features, 7), int64
        Row mask and its span, column mask and its span, place in ``out``.
    row_masks, col_masks : ndarray of shape (n_masks, rows) and (n_masks, cols), float32
    out : ndarray of shape (n, n_features), float32
    """
    channels = images.shape[3]
    for i in prange(images.shape[0]):
        pixels = np.zeros(scratch, np.float32)
        responses = np.empty(scratch, np.float32)
        profile = np.empty(col_masks.shape[1], np.float32)
        _strips(images[i], unit, pad_y, pad_x, strips, starts, height, pixels)
        for t in range(windows.shape[0]):
            strip, y0, n_rows, x0 = windows[t, 0], windows[t, 1], windows[t, 2], windows[t, 3]
            width = strips[strip, 1]
            size = (n_rows - 1) * width + width - q + 1
            response = responses[:size]
            response[:] = np.float32(0)
            for c in range(channels):
                for dy in range(q):
                    base = starts[strip] + (c * height + y0 + dy) * width
                    for dx in range(0, taps.shape[3], 4):
                        _add_taps(pixels[base + dx :], taps[t, c, dy, dx : dx + 4], response)
            for f in range(members[t], members[t + 1]):
                a, top, end = features[f, 0], features[f, 1], features[f, 2]
                b, left, right = features[f, 3], features[f, 4], features[f, 5]
                peak = profile[: right - left]
                peak[:] = np.float32(0)
                for y in range(top, end):
                    place = (y - y0) * width + left - x0
                    _raise_to(response[place : place + right - left], row_masks[a, y], peak)
                best = np.float32(0)
                for x in range(right - left):
                    v = peak[x] * col_masks[b, left + x]
                    best = v if v > best else best
                out[i, features[f, 6]] = best
