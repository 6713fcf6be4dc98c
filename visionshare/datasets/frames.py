"""Frames of cameras as pictures."""

from __future__ import annotations

import numpy as np

from visionshare.datasets.canvas import to_gray
from visionshare.errors import InputError

#: Formats of a frame, and the bytes of a pixel: gray; 5, 6 and 5 bits of red, green and blue with
#: the low or the high byte first; brightness beside colors, and the other way round; red, green
#: and blue.
FRAMES = {"gray": 1, "rgb565": 2, "rgb565-swapped": 2, "yuyv": 2, "uyvy": 2, "rgb888": 3}
# Columns of cells that are means of several pixels.
MOST_COLUMNS = 128
# What red, green and blue count, in 256ths of a gray value.
_SHARES = {2: (630, 608, 240), 3: (77, 150, 29)}
# 256ths of 255 that a step of red, green and blue is worth.
_LARGEST = {2: (2106, 1036, 2106), 3: (256, 256, 256)}


def gray_of_frame(frame: np.ndarray, kind: str, most: int | None = None) -> np.ndarray:
    """Return the gray picture of a frame."""
    # Where it would have more than ``most`` values, each is the mean of a square of pixels, the
    # smallest that leaves no more: what a small core has room for.
    frame = _checked(frame, kind)
    channels = _channels(frame, kind)
    step = 1 if most is None else cell_side(channels[0].shape, most)
    if step > 1:
        return _means(channels, _SHARES[FRAMES[kind]] if len(channels) == 3 else (256,), step)
    if len(channels) == 1:
        return channels[0]
    if kind != "rgb888":
        # The highest bits again below the lowest: 31 becomes 255.
        red, green, blue = channels
        channels = [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2]
    return to_gray(np.stack(channels, axis=2).astype(np.uint8))


def color_of_frame(frame: np.ndarray, kind: str, most: int | None = None) -> np.ndarray:
    """Return the picture of a frame in red, green and blue, (rows, columns, 3)."""
    # As :func:`gray_of_frame`. Two pixels of YUV422 share a color: rows have even numbers of
    # pixels.
    frame = _checked(frame, kind)
    if kind == "gray":
        return np.repeat(gray_of_frame(frame, kind, most)[..., None], 3, axis=2)
    if kind in ("yuyv", "uyvy"):
        if frame.shape[1] % 4:
            raise InputError("frame", frame.shape, "an even number of pixels in a row")
        first = 0 if kind == "yuyv" else 1
        colors = [frame[:, 1 - first + 2 * i :: 4].repeat(2, axis=1) for i in range(2)]
        y, u, v = (_color_means(c, most, 256) for c in (frame[:, first::2], *colors))
        sums = (359 * v - 359 * 128, -88 * u - 183 * v + 271 * 128, 454 * u - 454 * 128)
        parts = [np.clip((256 * y + of_color + 128) >> 8, 0, 255) for of_color in sums]
    else:
        largest = _LARGEST[FRAMES[kind]]
        channels = _channels(frame, kind)
        parts = [_color_means(c, most, f) for c, f in zip(channels, largest, strict=True)]
    return np.stack(parts, axis=2).astype(np.uint8)


def _color_means(channel: np.ndarray, most: int | None, factor: int) -> np.ndarray:
    """Return the means of squares, times a factor of 256."""
    step = 1 if most is None else cell_side(channel.shape, most)
    return _means([channel], (factor,), step).astype(np.int64)


def _checked(frame: np.ndarray, kind: str) -> np.ndarray:
    """Return a frame as an array, or say what it must be."""
    if kind not in FRAMES:
        raise InputError("kind", kind, ", ".join(FRAMES))
    frame = np.asarray(frame)
    if frame.dtype != np.uint8 or frame.ndim != 2 or frame.shape[1] % FRAMES[kind]:
        given = f"{frame.dtype} of shape {frame.shape}"
        raise InputError("frame", given, f"rows of bytes, {FRAMES[kind]} a pixel")
    return frame


def frame_of_gray(gray: np.ndarray, kind: str) -> np.ndarray:
    """Return a frame that shows a gray picture, as a camera would give it."""
    height, width = gray.shape
    if kind in ("gray", "rgb888"):
        return gray.repeat(FRAMES[kind], axis=1)
    high, low = gray, np.full_like(gray, 128)
    if "rgb565" in kind:
        high = gray & 248 | gray >> 5
        low = gray << 3 & 224 | gray >> 3
    pair = (low, high) if kind in ("rgb565", "uyvy") else (high, low)
    return np.stack(pair, axis=2).reshape(height, 2 * width)


def cell_side(shape: tuple[int, ...], most: int) -> int:
    """Return the side of the squares whose means are so many values at most."""
    step = 1
    while True:
        rows, columns = (-(-side // step) for side in shape)
        if rows * columns <= most and (step == 1 or columns <= MOST_COLUMNS):
            return step
        step += 1


def _channels(frame: np.ndarray, kind: str) -> list[np.ndarray]:
    """Return the brightness of a frame, or red, green and blue of as many bits as it has."""
    if kind == "gray":
        return [frame]
    if kind == "rgb888":
        return [frame[:, i::3] for i in range(3)]
    first = frame[:, 0::2]
    second = frame[:, 1::2]
    if kind in ("yuyv", "uyvy"):
        return [first if kind == "yuyv" else second]
    low, high = (first, second) if kind == "rgb565" else (second, first)
    value = low.astype(np.int64) | high.astype(np.int64) << 8
    return [value >> 11, value >> 5 & 63, value & 31]


def _means(channels: list[np.ndarray], shares: tuple[int, ...], step: int) -> np.ndarray:
    """Return the gray means of squares of pixels, halves rounded up."""
    height, width = channels[0].shape
    rows = np.arange(0, height, step)
    columns = np.arange(0, width, step)
    weighted = sum(
        share * channel.astype(np.int64) for share, channel in zip(shares, channels, strict=True)
    )
    sums = np.add.reduceat(np.add.reduceat(weighted, rows, axis=0), columns, axis=1)
    counts = np.multiply.outer(np.diff(np.append(rows, height)), np.diff(np.append(columns, width)))
    return np.asarray((sums + 128 * counts) // (256 * counts), np.uint8)
