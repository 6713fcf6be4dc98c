"""The kernel of chosen patch features: for one image or many, what they need and no more."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from visionshare.generators.patch_kernels import raise_to

__all__ = ["chosen_features", "chosen_features_alone"]


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


@njit(cache=True, nogil=True)
def _place(best: np.float32, peak: np.ndarray, col_mask: np.ndarray, response: np.ndarray,
           row_mask: np.ndarray, width: int) -> int:  # fmt: skip
    """Return row · width + column of the first position whose weighted response is the maximum.

    −1 where no response is above zero. The products are those that the maximum was found from.
    """
    if best <= 0:
        return -1
    for x in range(peak.shape[0]):
        if peak[x] * col_mask[x] == best:
            for y in range(row_mask.shape[0]):
                if response[y * width + x] * row_mask[y] == peak[x]:
                    return y * width + x
    return -1


def _chosen_features(
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
    places: np.ndarray,
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
    places : ndarray of shape (n, n_features), int32, or (0, 0)
        Where each maximum was found, row · positions + column; −1 where the feature is zero.
        Not written when empty.
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
                    raise_to(response[place : place + right - left], row_masks[a, y], peak)
                best = np.float32(0)
                for x in range(right - left):
                    v = peak[x] * col_masks[b, left + x]
                    best = v if v > best else best
                out[i, features[f, 6]] = best
                if places.size:
                    first = (top - y0) * width + left - x0
                    found = _place(best, peak, col_masks[b, left:right], response[first:],
                                   row_masks[a, top:end], width)  # fmt: skip
                    row, column = top + found // width, left + found % width
                    place = row * col_masks.shape[1] + column
                    places[i, features[f, 6]] = place if found >= 0 else -1


chosen_features = njit(cache=True, nogil=True, parallel=True)(_chosen_features)
# For one image: a second thread has nothing to do, and on a busy machine is waited for.
chosen_features_alone = njit(cache=True, nogil=True)(_chosen_features)
