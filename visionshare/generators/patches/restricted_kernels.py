"""The kernel of chosen patch features of few images: what they need and no more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.patches.kernels import raise_to, raise_to_rows
from visionshare.generators.patches.record_kernels import margin, pixel_unit, unpacked
from visionshare.generators.patches.tables import Masks

__all__ = ["chosen_features_alone"]


class Strip(NamedTuple):
    """Pixels of a strip from the first that a window reads, floats of a plane, and of a row."""

    pixels: np.ndarray
    plane: int
    width: int


class Window(NamedTuple):
    """First row and column of the positions of responses, and floats from row to row."""

    top: int
    left: int
    width: int


@njit(cache=True, nogil=True)
def _copy_strips(
    image: np.ndarray, strips: np.ndarray, pad_y: int, pad_x: int, height: int, out: np.ndarray
) -> None:
    """Copy the padded image's vertical strips, each channel a plane, one after the other."""
    H, W, channels = image.shape
    unit = pixel_unit(image)
    for s in range(strips.shape[0]):
        x0 = strips[s, 0]
        width = strips[s, 1]
        for c in range(channels):
            base = strips[s, 2] + c * height * width
            for y in range(height):
                v = y - pad_y
                for x in range(width):
                    u = x0 + x - pad_x
                    inside = v >= 0 and v < H and u >= 0 and u < W
                    value = np.float32(image[v, u, c]) * unit if inside else np.float32(0)
                    out[base + y * width + x] = value


@njit(cache=True, nogil=True)
def _add_taps(pixels: np.ndarray, taps: np.ndarray, out: np.ndarray) -> None:
    """Add four neighboring taps of a template at every position."""
    w0 = taps[0]
    w1 = taps[1]
    w2 = taps[2]
    w3 = taps[3]
    for i in range(out.shape[0]):
        out[i] += (w0 * pixels[i] + w1 * pixels[i + 1]) + (w2 * pixels[i + 2] + w3 * pixels[i + 3])


@njit(cache=True, nogil=True)
def _add_taps_of_two(
    pixels: np.ndarray, taps: np.ndarray, others: np.ndarray, out: np.ndarray, other: np.ndarray
) -> None:
    """Add four neighboring taps of each of two templates at every position."""
    # Pixels are read once for both: reading them is what a template alone waits for.
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
        b = pixels[i + 1]
        c = pixels[i + 2]
        d = pixels[i + 3]
        out[i] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
        other[i] += (v0 * a + v1 * b) + (v2 * c + v3 * d)


@njit(cache=True, nogil=True)
def _respond(
    strip: Strip, taps: np.ndarray, t: int, u: int, first: np.ndarray, second: np.ndarray
) -> None:
    """Write the responses of template t, and of u where that is not −1, on one window."""
    pixels = borrowed(strip.pixels)
    taps = borrowed(taps)
    first[:] = np.float32(0)
    second[:] = np.float32(0)
    for c in range(taps.shape[1]):
        for dy in range(taps.shape[2]):
            row = c * strip.plane + dy * strip.width
            for dx in range(0, taps.shape[3], 4):
                weights = taps[t, c, dy, dx : dx + 4]
                if u < 0:
                    _add_taps(pixels[row + dx :], weights, first)
                else:
                    other = taps[u, c, dy, dx : dx + 4]
                    _add_taps_of_two(pixels[row + dx :], weights, other, first, second)


@njit(cache=True, nogil=True)
def _position(
    best: np.float32,
    peak: np.ndarray,
    col_mask: np.ndarray,
    response: np.ndarray,
    row_mask: np.ndarray,
    width: int,
) -> int:
    """Return row · width + column of the first position whose weighted response is the maximum."""
    # −1 where no response is above zero. The products are those that the maximum is of.
    if best <= 0:
        return -1
    for x in range(peak.shape[0]):
        if peak[x] * col_mask[x] == best:
            for y in range(row_mask.shape[0]):
                if response[y * width + x] * row_mask[y] == peak[x]:
                    return y * width + x
    return -1


@njit(cache=True, nogil=True)
def _pool(
    response: np.ndarray,
    window: Window,
    features: np.ndarray,
    masks: Masks,
    profile: np.ndarray,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write the features of one template's response on a window."""
    response = borrowed(response)
    features = borrowed(features)
    profile = borrowed(profile)
    rows = borrowed(masks.rows)
    cols = borrowed(masks.cols)
    width = window.width
    for f in range(features.shape[0]):
        a = features[f, 0]
        top = features[f, 1]
        end = features[f, 2]
        b = features[f, 3]
        left = features[f, 4]
        right = features[f, 5]
        peak = profile[: right - left]
        peak[:] = np.float32(0)
        start = (top - window.top) * width + left - window.left
        offset = start
        y = top
        while y + 4 <= end:
            # Four rows a pass: the maxima so far are read and written once for all.
            w = rows[a, y : y + 4]
            raise_to_rows(response[offset:], width, w[0], w[1], w[2], w[3], peak)
            offset = offset + 4 * width
            y = y + 4
        for row in range(y, end):
            raise_to(response[offset : offset + right - left], rows[a, row], peak)
            offset += width
        best = np.float32(0)
        for x in range(right - left):
            v = peak[x] * cols[b, left + x]
            best = v if v > best else best
        out[features[f, 6]] = best
        if maxima.size:
            index = _position(
                best, peak, cols[b, left:right], response[start:], rows[a, top:end], width
            )
            position = (top + index // width) * cols.shape[1] + left + index % width
            maxima[features[f, 6]] = position if index >= 0 else -1


@njit(cache=True, nogil=True)
def chosen_features_alone(
    images: np.ndarray,
    packed: np.ndarray,
    taps: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    out: np.ndarray,
    maxima: np.ndarray,
) -> None:
    """Write chosen features: a template once for all its masks, only where they reach."""
    # One thread: for a single image another has nothing to do, and on a busy machine is waited
    # for.
    # images: (n, H, W, C), uint8 or float32
    # taps: (n_windows, C, q, n_taps), float32
    # row_masks, col_masks: (n_masks, rows) and (n_masks, cols), float32
    # out: (n, n_features), float32
    # maxima: (n, n_features), int32, or (0, 0)
    nowhere = np.empty(0, np.int32)
    strips, windows, pairs, features = unpacked(packed)
    masks = Masks(row_masks, col_masks)
    channels = taps.shape[1]
    q = taps.shape[2]
    height = row_masks.shape[1] + q - 1
    pad_y = margin(images.shape[1], row_masks.shape[1], q)
    pad_x = margin(images.shape[2], col_masks.shape[1], q)
    # Four taps at a time read a little past the last strip's end.
    scratch = strips[:, 1].sum() * height * channels + taps.shape[3]
    for i in range(images.shape[0]):
        pixels = np.zeros(scratch, np.float32)
        one = np.empty(scratch, np.float32)
        two = np.empty(scratch, np.float32)
        profile = np.empty(col_masks.shape[1], np.float32)
        _copy_strips(images[i], strips, pad_y, pad_x, height, pixels)
        positions = maxima[i] if maxima.size else nowhere
        for pair in range(pairs.shape[0]):
            t = pairs[pair, 0]
            u = pairs[pair, 1]
            number = windows[t, 0]
            y0 = windows[t, 1]
            n_rows = windows[t, 2]
            x0 = windows[t, 3]
            width = strips[number, 1]
            size = (n_rows - 1) * width + width - q + 1
            strip = Strip(pixels[strips[number, 2] + y0 * width :], height * width, width)
            _respond(strip, taps, t, u, one[:size], two[:size])
            for k in range(2):
                w = pairs[pair, k]
                if w >= 0:
                    served = features[windows[w, 5] : windows[w, 6]]
                    _pool(
                        one if k == 0 else two,
                        Window(y0, x0, width),
                        served,
                        masks,
                        profile,
                        out[i],
                        positions,
                    )
