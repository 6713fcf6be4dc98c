"""Lines: which pieces of ink stand beside each other, and which make up one character."""

from __future__ import annotations

import numpy as np

from visionshare.reading.components import Piece, joined, typical_height
from visionshare.reading.page import Box, around

__all__ = ["characters_of", "find_lines"]

# In heights of a character: what is lower than this is a dot, an accent, a comma or a dash.
_MIN_HEIGHT = 0.35
# The widest gap between neighbors on a line, in heights of the taller.
_MAX_GAP = 2.0
_MAX_RATIO = 2.5


def find_lines(pieces: list[Piece]) -> list[list[Piece]]:
    """Return pieces by the lines that they stand on, each from left to right."""
    # Each piece of a character's height is linked with its nearest neighbor to the right, if that
    # is about as high, overlaps it vertically, and is near. What is linked is a line, or a part
    # of one where a wide gap divides it. Smaller pieces join the line around them.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    height = typical_height([p.box for p in pieces])
    large = [p for p in pieces if p.box.height >= _MIN_HEIGHT * height]
    small = [p for p in pieces if p.box.height < _MIN_HEIGHT * height]
    if not large:
        return []
    large.sort(key=lambda p: (p.box.left, p.box.top))
    boxes = np.array([p.box for p in large])
    neighbors = _right_neighbors(boxes)
    linked = np.flatnonzero(neighbors >= 0)
    links = coo_array((np.ones(len(linked)), (linked, neighbors[linked])), (len(large),) * 2)
    n_lines, line_of = connected_components(links, directed=False)
    lines = [[large[i] for i in np.flatnonzero(line_of == line)] for line in range(n_lines)]
    lines, marks = _without_marks(lines)
    _add_small(lines, small + marks)
    return [sorted(line, key=lambda p: (p.box.left, p.box.top)) for line in lines]


def _right_neighbors(boxes: np.ndarray) -> np.ndarray:
    """Return each box's nearest neighbor on its line to the right, or −1."""
    left, top, right, bottom = boxes.T
    heights = bottom - top
    neighbors = np.full(len(boxes), -1)
    for i in range(len(boxes)):
        # No neighbor is taller than this times the box's own height.
        reach = right[i] + _MAX_GAP * _MAX_RATIO * heights[i]
        near = slice(i + 1, int(np.searchsorted(left, reach, side="right")))
        shared = np.minimum(bottom[near], bottom[i]) - np.maximum(top[near], top[i])
        shorter = np.minimum(heights[near], heights[i])
        taller = np.maximum(heights[near], heights[i])
        gaps = left[near] - right[i]
        fit = (shared >= 0.5 * shorter) & (taller <= _MAX_RATIO * shorter)
        fit &= gaps <= _MAX_GAP * taller
        if fit.any():
            fitting = np.flatnonzero(fit)
            neighbors[i] = i + 1 + fitting[np.argmin(gaps[fitting])]
    return neighbors


class _Bands:
    """Where lines are on the page."""

    def __init__(self, lines: list[list[Piece]]) -> None:
        boxes = [around([p.box for p in line]) for line in lines]
        self.left, self.top, self.right, self.bottom = np.array(boxes, np.float64).T
        self.heights = np.array([np.median([p.box.height for p in line]) for line in lines])

    def nearest(self, box: Box) -> int:
        """Return the line around a small piece: the one whose middle is nearest; −1 if none is."""
        x = (box.left + box.right) / 2
        y = (box.top + box.bottom) / 2
        near = (x >= self.left - self.heights) & (x <= self.right + self.heights)
        # Dots stand above a line of small letters, commas hang below it.
        near &= (y >= self.top - 0.6 * self.heights) & (y <= self.bottom + 0.3 * self.heights)
        # What is half as high as a line's characters is none of its small pieces.
        near &= box.height <= 0.5 * self.heights
        if not near.any():
            return -1
        return int(np.argmin(np.where(near, np.abs(y - (self.top + self.bottom) / 2), np.inf)))


def _without_marks(lines: list[list[Piece]]) -> tuple[list[list[Piece]], list[Piece]]:
    """Return lines without those that are a comma or two inside of another, and the commas."""
    bands = _Bands(lines)
    kept = []
    marks = []
    for line in lines:
        if len(line) <= 2 and bands.nearest(around([p.box for p in line])) >= 0:
            marks += line
        else:
            kept.append(line)
    return kept, marks


def _add_small(lines: list[list[Piece]], small: list[Piece]) -> None:
    """Add each small piece to the line around it."""
    bands = _Bands(lines)
    for piece in small:
        index = bands.nearest(piece.box)
        if index >= 0:
            lines[index].append(piece)


def characters_of(line: list[Piece]) -> list[Piece]:
    """Return a line's pieces joined to characters, without what is too small to be one."""
    # Pieces above each other (a dot and its stem, a stroke that broke) and pieces inside of
    # others (the dot of a zero) are one character. Letters whose boxes overlap sideways, as
    # slanted ones do, stay apart.
    height = _line_height(line)
    groups: list[list[Piece]] = []
    for piece in line:
        for group in reversed(groups[-3:]):
            if _belongs(around([p.box for p in group]), piece.box, height):
                group.append(piece)
                break
        else:
            groups.append([piece])
    characters = [joined(group) for group in groups]
    return [c for c in characters if not _is_mark(c.box, height)]


def _line_height(line: list[Piece]) -> float:
    return float(np.percentile([p.box.height for p in line], 80))


def _belongs(one: Box, other: Box, height: float) -> bool:
    shared = min(one.right, other.right) - max(one.left, other.left)
    narrower = min(one.width, other.width)
    both = around([one, other])
    if shared < 0.5 * narrower or both.height > 1.6 * height or both.width > 1.8 * height:
        return False
    overlap = min(one.bottom, other.bottom) - max(one.top, other.top)
    lower = min(one.height, other.height)
    inside = shared >= 0.9 * narrower and overlap >= 0.9 * lower and lower < 0.7 * height
    return overlap < 0.3 * lower or inside


def _is_mark(box: Box, height: float) -> bool:
    """Return whether this is a dot, a comma, a dash or dust, in a line of this height."""
    return box.height < 0.3 * height or (box.height < 0.45 * height and box.width < 0.35 * height)
