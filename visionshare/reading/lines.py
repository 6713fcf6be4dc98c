"""Lines: which pieces of ink stand beside each other, and which make up one character."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.reading.components import Piece, joined, typical_height
from visionshare.reading.page import Box, enclosing_box

# In heights of a character: what is lower than this is a dot, an accent, a comma or a dash.
_MIN_HEIGHT = 0.35
# The widest gap between neighbors on a line, in heights of the taller.
_MAX_GAP = 2.0
_MAX_RATIO = 2.5


class Mark(NamedTuple):
    """A small piece of a line, or two above each other: perhaps punctuation."""

    box: Box
    n_pieces: int


def find_lines(pieces: list[Piece]) -> list[list[Piece]]:
    """Return pieces by the lines that they stand on, each from left to right."""
    # Each piece of a character's height is linked with its nearest neighbor to the right, if that
    # is about as high, overlaps it vertically, and is near. What is linked is a line, or a part
    # of one where a wide gap divides it. Smaller pieces join the line around them.
    height = typical_height([p.box for p in pieces])
    large = [p for p in pieces if p.box.height >= _MIN_HEIGHT * height]
    small = [p for p in pieces if p.box.height < _MIN_HEIGHT * height]
    if not large:
        return []
    large.sort(key=lambda p: (p.box.left, p.box.top))
    neighbors = _right_neighbors(np.array([p.box for p in large]), _MAX_GAP, _MAX_RATIO)
    # Neighbors stand behind each piece: the last piece of a line names it.
    ends = list(range(len(large)))
    for i in reversed(range(len(large))):
        if neighbors[i] >= 0:
            ends[i] = ends[neighbors[i]]
    linked: dict[int, list[Piece]] = {}
    for end, piece in zip(ends, large, strict=True):
        linked.setdefault(end, []).append(piece)
    lines, marks = _without_marks(list(linked.values()))
    _add_small(lines, small + marks)
    return [sorted(line, key=lambda p: (p.box.left, p.box.top)) for line in lines]


@njit(cache=True, nogil=True)
def _right_neighbors(boxes: np.ndarray, max_gap: float, max_ratio: float) -> np.ndarray:
    """Return each box's nearest neighbor on its line to the right, or −1; sorted by their left."""
    n = len(boxes)
    neighbors = np.full(n, -1)
    for i in range(n):
        height = boxes[i, 3] - boxes[i, 1]
        nearest = np.inf
        for j in range(i + 1, n):
            gap = boxes[j, 0] - boxes[i, 2]
            # No neighbor is taller than this times the box's own height.
            if gap > max_gap * max_ratio * height or gap >= nearest:
                break
            other = boxes[j, 3] - boxes[j, 1]
            shorter = min(height, other)
            taller = max(height, other)
            shared = min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
            if (
                shared >= 0.5 * shorter
                and taller <= max_ratio * shorter
                and gap <= max_gap * taller
            ):
                neighbors[i] = j
                nearest = gap
    return neighbors


class _Bands:
    """Where lines are on the page."""

    def __init__(self, lines: list[list[Piece]]) -> None:
        boxes = [enclosing_box([p.box for p in line]) for line in lines]
        self.left, self.top, self.right, self.bottom = np.array(boxes, np.float64).T
        self.heights = np.array([median([p.box.height for p in line]) for line in lines])

    def nearest(self, box: Box) -> int:
        """Return the line around a small piece: the one whose middle is nearest; −1 if none is."""
        x = (box.left + box.right) / 2
        y = (box.top + box.bottom) / 2
        near = (x >= self.left - self.heights) & (x <= self.right + self.heights)
        # Dots stand above a line of small letters, commas hang below it.
        near &= (y >= self.top - 0.6 * self.heights) & (y <= self.bottom + 0.3 * self.heights)
        # What is higher than a comma is none of a line's small pieces.
        near &= box.height <= 0.6 * self.heights
        if not near.any():
            return -1
        return int(np.argmin(np.where(near, np.abs(y - (self.top + self.bottom) / 2), np.inf)))


def _without_marks(lines: list[list[Piece]]) -> tuple[list[list[Piece]], list[Piece]]:
    """Return lines without those that are a comma or two inside of another, and the commas."""
    bands = _Bands(lines)
    kept = []
    marks = []
    for line in lines:
        if len(line) <= 2 and bands.nearest(enclosing_box([p.box for p in line])) >= 0:
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
    return characters_and_marks(line)[0]


def characters_and_marks(line: list[Piece]) -> tuple[list[Piece], list[Mark]]:
    """Return a line's pieces joined to characters, and what is too small to be one."""
    # Pieces above each other (a dot and its stem, a stroke that broke) and pieces inside of
    # others (the dot of a zero) are one character. Letters whose boxes overlap sideways, as
    # slanted ones do, stay apart.
    height = _line_height(line)
    groups: list[list[Piece]] = []
    for piece in _with_percents(line, height):
        for group in reversed(groups[-3:]):
            if _belongs(enclosing_box([p.box for p in group]), piece.box, height):
                group.append(piece)
                break
        else:
            groups.append([piece])
    base = median([p.box.bottom for p in line if p.box.height > 0.6 * height])
    characters = []
    marks = []
    for group in groups:
        dots = [max(piece.box.height, piece.box.width) < 0.3 * height for piece in group]
        whole = joined(group)
        is_mark = _is_mark(whole.box, height) or _is_comma(whole.box, base, height)
        if is_mark or (len(group) == 2 and all(dots)):
            marks.append(Mark(whole.box, len(group)))
        else:
            characters.append(whole)
    return characters, marks


def _with_percents(line: list[Piece], height: float) -> list[Piece]:
    """Return a line's pieces with the three of a percent sign as one."""
    found: list[Piece] = []
    for piece in line:
        found.append(piece)
        if len(found) >= 3 and _is_percent([p.box for p in found[-3:]], height):
            found[-3:] = [joined(found[-3:])]
    return found


def _is_percent(boxes: list[Box], height: float) -> bool:
    """Return whether three boxes are a bar with a ring above and a ring below, to its right."""
    *rings, bar = sorted(boxes, key=lambda b: b.height)
    first, last = sorted(rings, key=lambda b: b.left)
    # A comma is lower, or narrower than it is high.
    round_ = all(0.25 * height <= b.height <= min(0.7 * height, 2 * b.width) for b in rings)
    apart = max(bar.left - first.right, last.left - bar.right) <= 0.08 * height
    steps_down = first.top + 0.25 * height < last.top and first.bottom < last.bottom
    is_high = bar.height >= 0.6 * height and last.bottom - first.top >= 0.85 * height
    return round_ and apart and steps_down and is_high


def _line_height(line: list[Piece]) -> float:
    return float(np.percentile([p.box.height for p in line], 80))


def _belongs(one: Box, other: Box, height: float) -> bool:
    shared = min(one.right, other.right) - max(one.left, other.left)
    narrower = min(one.width, other.width)
    both = enclosing_box([one, other])
    if shared < 0.5 * narrower or both.height > 1.6 * height or both.width > 1.8 * height:
        return False
    overlap = min(one.bottom, other.bottom) - max(one.top, other.top)
    lower = min(one.height, other.height)
    inside = shared >= 0.9 * narrower and overlap >= 0.9 * lower and lower < 0.7 * height
    return overlap < 0.3 * lower or inside


def _is_mark(box: Box, height: float) -> bool:
    """Return whether this is a dot, a comma, a dash or dust, in a line of this height."""
    return box.height < 0.3 * height or (box.height < 0.5 * height and box.width < 0.4 * height)


def _is_comma(box: Box, base: float, height: float) -> bool:
    """Return whether this hangs below the middle of a line, too small for a letter."""
    is_small = box.height < 0.75 * height and box.width < 0.55 * height
    return is_small and box.top > base - 0.45 * height and box.bottom > base - 0.15 * height


def mark_probabilities(mark: Mark, boxes: Sequence[Box], height: float) -> dict[str, float]:
    """Return which punctuation a mark is, by its size and its place beside characters."""
    box = mark.box
    x = box.left + box.right
    near = sorted(boxes, key=lambda b: abs(b.left + b.right - x))[:6]
    base = median([b.bottom for b in near])
    width = box.width / height
    tall = box.height / height
    below = (box.bottom - base) / height
    middle = (base - (box.top + box.bottom) / 2) / height
    if mark.n_pieces == 2:
        return {":": 0.95} if width < 0.35 and abs(below) < 0.3 and tall > 0.3 else {}
    if max(width, tall) < 0.08:
        return {}
    if 0.15 < width < 1.0 and width >= 1.4 * tall and 0.2 < middle < 0.75:
        return {"-": 0.97}
    if middle >= 0.5:
        return {"'": 0.9}
    if width < 0.6 and -0.25 < below < 0.4 and middle < 0.35:
        # A comma hangs below its line, and is higher than it is wide.
        comma = 1 / (1 + np.exp(-14 * (below - 0.09) - 4 * (tall / width - 1.45)))
        return {",": 0.97 * float(comma), ".": 0.97 * float(1 - comma)}
    return {}
