"""Frames of cameras as pictures."""

from __future__ import annotations

import numpy as np

from visionshare.datasets.canvas import to_gray
from visionshare.errors import InputError

#: Formats of a frame, and the bytes of a pixel: gray; 5, 6 and 5 bits of red, green and blue with
#: the low or the high byte first; brightness beside colors, and the other way round.
FRAMES = {"gray": 1, "rgb565": 2, "rgb565-swapped": 2, "yuyv": 2, "uyvy": 2}


def gray_of_frame(frame: np.ndarray, kind: str) -> np.ndarray:
    """Return the gray picture of a frame."""
    if kind not in FRAMES:
        raise InputError("kind", kind, ", ".join(FRAMES))
    frame = np.asarray(frame)
    if frame.dtype != np.uint8 or frame.ndim != 2 or frame.shape[1] % FRAMES[kind]:
        given = f"{frame.dtype} of shape {frame.shape}"
        raise InputError("frame", given, f"rows of bytes, {FRAMES[kind]} a pixel")
    if kind == "gray":
        return frame
    first = frame[:, 0::2]
    second = frame[:, 1::2]
    if kind in ("yuyv", "uyvy"):
        return first if kind == "yuyv" else second
    low, high = (first, second) if kind == "rgb565" else (second, first)
    value = low.astype(np.int64) | high.astype(np.int64) << 8
    red = value >> 11
    green = value >> 5 & 63
    blue = value & 31
    # The highest bits again below the lowest: 31 becomes 255.
    colors = [red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2]
    return to_gray(np.stack(colors, axis=2).astype(np.uint8))
