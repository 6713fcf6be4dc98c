"""Letters that touch, and letters that broke: the classifier chooses among segmentations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from visionshare.datasets.characters import without_specks
from visionshare.reading.components import Piece, joined
from visionshare.reading.page import Box

_MAX_CUTS = 8
# What a cut costs, of the probabilities' logarithm: halves of letters look like I.
_COST_OF_CUT = 0.2
# What a letter that is too wide costs.
_COST_OF_WIDTH = 5.0
# In heights of the line: widths of M and W, and of all other letters; the height of M and W.
_MAX_WIDTH_OF_M = 1.6
_MAX_WIDTH = 1.25
_MAX_HEIGHT_OF_M = 1.15
_MIN_WIDTH = 0.08
# A character of this probability, and of no more than this width, is left alone.
_CERTAIN = 0.95
_USUAL_WIDTH = 1.15
# In heights: two characters are wider together. The 4 of a display is 0.6 wide.
_MIN_SPLIT = 0.62


class Recognition(NamedTuple):
    """What a classifier says of n pieces."""

    probability: np.ndarray
    is_broad: np.ndarray


Recognizer = Callable[[Sequence[Piece]], Recognition]


def cut_columns(mask: np.ndarray, max_cuts: int = _MAX_CUTS) -> list[int]:
    """Return the columns where a piece of touching letters may be cut, ascending."""
    # They are the lowest of the local minima of the ink a column holds, no two of them neighbors.
    height, width = mask.shape
    ink = mask.sum(axis=0).astype(np.float64)
    # Of a flat minimum the middle is taken.
    soft = np.convolve(np.pad(ink, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    margin = max(2, round(_MIN_WIDTH * height))
    inner = np.arange(margin, width - margin)
    if len(inner) == 0:
        return []
    local = (soft[inner] <= soft[inner - 1]) & (soft[inner] <= soft[inner + 1])
    local &= ink[inner] <= 0.5 * height
    columns: list[int] = []
    for column in inner[local][np.argsort(soft[inner[local]], kind="stable")].tolist():
        if len(columns) == max_cuts:
            break
        if all(abs(column - other) >= margin for other in columns):
            columns.append(column)
    return sorted(columns)


def part_of(piece: Piece, start: int, stop: int) -> Piece | None:
    """Return columns of a piece as a piece, without what a cut left of others; None if empty."""
    mask = without_specks(piece.mask[:, start:stop], 20)
    rows = np.flatnonzero(mask.any(axis=1))
    cols = np.flatnonzero(mask.any(axis=0))
    if len(rows) == 0:
        return None
    window = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    left = piece.box.left + start + int(cols[0])
    top = piece.box.top + int(rows[0])
    right = left + int(cols[-1] - cols[0]) + 1
    bottom = top + int(rows[-1] - rows[0]) + 1
    darkness = piece.darkness[:, start:stop][window]
    return Piece(Box(left, top, right, bottom), mask[window], darkness)


def best_cuts(values: np.ndarray) -> list[int]:
    """Return the path from the first to the last of n nodes with the largest sum of values."""
    n = len(values)
    best = np.full(n, -np.inf)
    before = np.zeros(n, np.int64)
    best[0] = 0.0
    for j in range(1, n):
        sums = best[:j] + values[:j, j]
        before[j] = int(np.argmax(sums))
        best[j] = sums[before[j]]
    if not np.isfinite(best[-1]):
        return []
    path = []
    j = int(before[-1])
    while j > 0:
        path.append(j)
        j = int(before[j])
    return path[::-1]


def split_touching(
    pieces: Sequence[Piece], recognized: Recognition, height: float, recognize: Recognizer
) -> list[list[Piece]]:
    """Return, for each piece, the characters that it is: itself, or its parts."""
    # A piece that is wide, or whose class is uncertain, is cut at those columns of
    # :func:`cut_columns` that make the product of the parts' probabilities largest.
    characters = [[piece] for piece in pieces]
    for i, piece in enumerate(pieces):
        is_wide = piece.box.width > _USUAL_WIDTH * height
        is_certain = recognized.probability[i] >= _CERTAIN
        if (is_certain and not is_wide) or piece.box.width < _MIN_SPLIT * height:
            continue
        cuts = cut_columns(piece.mask)
        if cuts:
            value = _value(piece, recognized.probability[i], recognized.is_broad[i], height)
            characters[i] = _split(piece, [0, *cuts, piece.box.width], value, height, recognize)
    return characters


def _split(
    piece: Piece, columns: list[int], whole: float, height: float, recognize: Recognizer
) -> list[Piece]:
    """Return the best parts of a piece between these columns; ``whole`` is its value uncut."""
    n = len(columns)
    steps: list[tuple[int, int]] = []
    parts: list[Piece] = []
    for i in range(n - 1):
        for j in range(i + 1, n):
            width = columns[j] - columns[i]
            fits = _MIN_WIDTH * height <= width <= _MAX_WIDTH_OF_M * height
            if (i, j) == (0, n - 1) or not fits:
                continue
            part = part_of(piece, columns[i], columns[j])
            # A letter has the height of its line, or of a small letter at least.
            if part is not None and part.box.height >= 0.4 * height:
                steps.append((i, j))
                parts.append(part)
    if not parts:
        return [piece]
    values = np.full((n, n), -np.inf)
    recognized = recognize(parts)
    for k, (i, j) in enumerate(steps):
        values[i, j] = _value(parts[k], recognized.probability[k], recognized.is_broad[k], height)
    values[0, n - 1] = whole
    path = [0, *best_cuts(values), n - 1]
    if len(path) == 2:
        return [piece]
    part_of_step = dict(zip(steps, parts, strict=True))
    return [part_of_step[step] for step in pairwise(path)]


def _value(piece: Piece, probability: float, is_broad: bool, height: float) -> float:
    """Return what a character adds to the value of a segmentation, at most 0."""
    # M and W stand on their line: what hangs below it is two letters, one of them a J.
    hangs = piece.box.height > _MAX_HEIGHT_OF_M * height
    max_width = _MAX_WIDTH_OF_M if is_broad and not hangs else _MAX_WIDTH
    cost = _COST_OF_WIDTH if piece.box.width > max_width * height else 0.0
    return float(np.log(max(probability, 1e-6)) - _COST_OF_CUT - cost)


def join_broken(
    pieces: Sequence[Piece], recognized: Recognition, height: float, recognize: Recognizer
) -> list[list[int]]:
    """Return the pieces' indices by character: strokes of a letter that broke are joined."""
    # Neighbors are joined where they are near, one of them is uncertain, and the two as one are
    # more probable than each alone.
    groups = [[i] for i in range(len(pieces))]
    single = recognized.probability
    pairs = [
        i for i in range(len(pieces) - 1)
        if min(single[i], single[i + 1]) < _CERTAIN
        and pieces[i + 1].box.left - pieces[i].box.right <= 0.12 * height
        and pieces[i + 1].box.right - pieces[i].box.left <= _USUAL_WIDTH * height
    ]  # fmt: skip
    if not pairs:
        return groups
    both = recognize([joined([pieces[i], pieces[i + 1]]) for i in pairs]).probability
    in_pairs: set[int] = set()
    for probability, i in sorted(zip(both.tolist(), pairs, strict=True), reverse=True):
        if in_pairs & {i, i + 1} or probability < 0.5:
            continue
        if np.log(probability) > np.log(single[i] * single[i + 1] + 1e-12) + _COST_OF_CUT:
            groups[i] = [i, i + 1]
            groups[i + 1] = []
            in_pairs |= {i, i + 1}
    return [group for group in groups if group]
