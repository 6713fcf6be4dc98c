"""Ruled lines: frames around fields, the grid of a table."""

from __future__ import annotations

import cv2
import numpy as np
from numba import njit

from visionshare.datasets.ink import Ink
from visionshare.reading.components import typical_height
from visionshare.reading.page import Box

# A piece may have rules if it is wider than high by this, or larger than characters by this both
# ways, or holds another of this height; the last two in its own or a character's heights.
_WIDE = 1.6
_LARGE = 3.0
_HELD = 0.35
# A level rule crosses this much of its piece, or is as long as so many heights of a character.
_ACROSS = 0.75
_LONG = 2.5
# Of a piece that holds no other, in its own heights.
_LONG_ALONE = 2.5
# The upper and the lower side of a frame are closed to this fraction.
_ALONG = 0.8
# An upright rule crosses this much of the way between two level ones: characters do not.
_BETWEEN = 0.9


def without_rules(ink: Ink) -> tuple[Ink, list[Box]]:
    """Return the ink without ruled lines, and where the upright ones were."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink.mask.astype(np.uint8))
    boxes = [Box(x, y, x + w, y + h) for x, y, w, h in stats[1:, :4].tolist()]
    height = typical_height(boxes)
    sides = np.array(boxes, np.int64).reshape(-1, 4)
    erased = np.zeros(ink.mask.shape, np.uint8)
    uprights: list[Box] = []
    may_have, holds = _may_have_rules(sides, height)
    for i in np.flatnonzero(may_have).tolist():
        box = boxes[i]
        window = slice(box.top, box.bottom), slice(box.left, box.right)
        piece = (labels[window] == i + 1).astype(np.uint8)
        across = min(_ACROSS * box.width, _LONG * height)
        if not holds[i]:
            # Letters that touch at their serifs are no frame.
            across = max(across, _LONG_ALONE * box.height)
        level, upright = _rules_of(piece, max(8, round(across)), height)
        erased[window] |= level | upright
        _, _, found, _ = cv2.connectedComponentsWithStats(upright)
        uprights += [
            Box(box.left + x, box.top + y, box.left + x + w, box.top + y + h)
            for x, y, w, h in found[1:, :4].tolist()
        ]
    if not erased.any():
        return ink, []
    # The soft edges of a line go with it.
    erased = cv2.dilate(erased, np.ones((3, 3), np.uint8))
    return Ink(ink.mask & (erased == 0), ink.darkness, ink.light_on_dark), uprights


def _may_have_rules(sides: np.ndarray, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which pieces (n,) may be frames or grids, and which hold others."""
    left, top, right, bottom = sides.T
    widths = right - left
    heights = bottom - top
    wide = (widths >= _WIDE * heights) & (heights >= 0.5 * height)
    large = np.minimum(widths, heights) >= _LARGE * height
    # A table's cells are many times higher than what they hold.
    held = _HELD * np.minimum(heights, height)
    holds = _holding(sides, held) & (heights >= height) & (widths > 0.5 * height)
    return wide | large | holds, holds


@njit(cache=True, nogil=True)
def _holding(sides: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return which boxes (n,) have another inside that is at least as high as ``held``."""
    n = len(sides)
    holds = np.zeros(n, np.bool_)
    for i in range(n):
        for j in range(n):
            inside = sides[i, 0] < sides[j, 0] and sides[j, 2] < sides[i, 2]
            inside &= sides[i, 1] < sides[j, 1] and sides[j, 3] < sides[i, 3]
            if inside and sides[j, 3] - sides[j, 1] >= held[i]:
                holds[i] = True
                break
    return holds


def _rules_of(piece: np.ndarray, length: int, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the level and the upright rules of a piece of ink, as masks."""
    level = cv2.morphologyEx(piece, cv2.MORPH_OPEN, np.ones((1, length), np.uint8))
    nothing = np.zeros_like(piece)
    is_ruled = np.append(level.any(axis=1), False)
    starts = np.flatnonzero(is_ruled & ~np.insert(is_ruled[:-1], 0, False))
    ends = np.flatnonzero(~is_ruled[1:] & is_ruled[:-1]) + 1
    thick = max(4.0, 0.3 * height)
    if len(starts) == 0 or (ends - starts).min() > thick:
        return nothing, nothing
    middles = (starts + ends) / 2
    # A frame or a grid has one along its upper and one along its lower side.
    edge = 0.15 * len(piece)
    along = [
        level[a:b].any(axis=0).mean() for a, b in zip(starts[[0, -1]], ends[[0, -1]], strict=True)
    ]
    if len(starts) < 2 or starts[0] > edge or ends[-1] < len(piece) - edge or min(along) < _ALONG:
        return nothing, nothing
    gaps = np.diff(middles)
    gaps = gaps[gaps > 0.8 * height]
    if len(gaps) == 0:
        return level, nothing
    length = max(8, round(_BETWEEN * float(gaps.min())))
    upright = cv2.morphologyEx(piece, cv2.MORPH_OPEN, np.ones((length, 1), np.uint8))
    return level, upright
