"""Reading order: columns from left to right, lines from the top down (recursive X-Y cut).

Nagy, Seth, Hierarchical representation of optically scanned documents, ICPR 1984.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.reading.page import Box, enclosing_box

# Between columns, in heights of a line.
_GUTTER = 1.5
# Between blocks below each other.
_PARAGRAPH = 1.8
# Fraction of a line's height that a cut may take from its box where lines nearly touch.
_GIVE = 0.2


def blocks_of_lines(boxes: list[Box], is_number: Sequence[bool] = ()) -> list[list[list[int]]]:
    """Return the order in which parts of lines are read."""
    # A page is cut at a gap that is free from top to bottom, with two lines or more on either
    # side: columns. Where there is none, it is cut at its widest gap from left to right, and both
    # parts are tried again. What cannot be cut is a line, or several whose boxes overlap. Numbers
    # beside lines, as on a receipt, are no column.
    blocks: list[list[list[int]]] = []
    stack = [np.arange(len(boxes))]
    sides = np.array(boxes).reshape(-1, 4)
    heights = sides[:, 3] - sides[:, 1]
    numbers_of = np.array(is_number or [False] * len(boxes), bool)
    last: Box | None = None
    fresh = True
    while stack:
        numbers = stack.pop()
        if len(numbers) == 0:
            # A mark: here columns begin or end.
            fresh = True
            continue
        height = float(np.median(heights[numbers]))
        columns = _columns(sides[numbers], height, numbers_of[numbers])
        if len(columns) > 1:
            for column in reversed(columns):
                stack += [np.empty(0, np.int64), numbers[column]]
            stack.append(np.empty(0, np.int64))
            continue
        halves = _halves(sides[numbers], heights[numbers])
        if halves is not None:
            stack += [numbers[halves[1]], numbers[halves[0]]]
            continue
        lines = _rows(numbers, sides)
        box = enclosing_box([boxes[i] for line in lines for i in line])
        if fresh or last is None or box.top - last.bottom > _PARAGRAPH * height:
            blocks.append([])
        blocks[-1] += lines
        last = box
        fresh = False
    return blocks


def _columns(sides: np.ndarray, height: float, is_number: np.ndarray) -> list[np.ndarray]:
    """Return the indices of the boxes of each column, from left to right."""
    order = np.argsort(sides[:, 0], kind="stable")
    reach = np.maximum.accumulate(sides[order, 2])
    cuts = np.flatnonzero(sides[order[1:], 0] - reach[:-1] >= _GUTTER * height) + 1
    parts: list[np.ndarray] = []
    for part in np.split(order, cuts):
        if parts and is_number[part].all() and _are_beside(sides[part], sides[parts[-1]]):
            parts[-1] = np.append(parts[-1], part)
        else:
            parts.append(part)
    if len(parts) < 2 or min(len(part) for part in parts) < 2:
        return [np.arange(len(sides))]
    # Columns stand beside each other: a heading at the right of nothing is no column.
    tops = max(int(sides[part, 1].min()) for part in parts)
    bottoms = min(int(sides[part, 3].max()) for part in parts)
    return [np.sort(part) for part in parts] if tops < bottoms else [np.arange(len(sides))]


def _are_beside(sides: np.ndarray, others: np.ndarray) -> bool:
    """Return whether each box shares half of its height or more with another."""
    tops = np.maximum(sides[:, None, 1], others[:, 1])
    shared = np.minimum(sides[:, None, 3], others[:, 3]) - tops
    return bool((2 * shared.max(axis=1) >= sides[:, 3] - sides[:, 1]).all())


def _halves(sides: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the boxes above and below the widest gap; None where there is none."""
    tops = sides[:, 1] + _GIVE * heights
    bottoms = sides[:, 3] - _GIVE * heights
    order = np.argsort(tops, kind="stable")
    reach = np.maximum.accumulate(bottoms[order])
    gaps = tops[order[1:]] - reach[:-1]
    if len(gaps) == 0 or gaps.max() <= 0:
        return None
    cut = int(np.argmax(gaps)) + 1
    return np.sort(order[:cut]), np.sort(order[cut:])


def _rows(numbers: np.ndarray, sides: np.ndarray) -> list[list[int]]:
    """Return boxes by rows: those that share half of their height, from left to right."""
    rows: list[list[int]] = []
    for i in sorted(numbers.tolist(), key=lambda n: (sides[n, 1] + sides[n, 3], sides[n, 0])):
        for row in reversed(rows):
            j = row[0]
            shared = min(sides[i, 3], sides[j, 3]) - max(sides[i, 1], sides[j, 1])
            if shared >= 0.5 * min(sides[i, 3] - sides[i, 1], sides[j, 3] - sides[j, 1]):
                row.append(i)
                break
        else:
            rows.append([i])
    return [sorted(row, key=lambda n: (sides[n, 0], n)) for row in rows]
