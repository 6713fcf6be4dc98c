"""Letters that touch, and letters that broke: other cuts of a line, judged by the classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from visionshare.apps.ocr.components import Piece, joined
from visionshare.apps.ocr.page import Box

__all__ = ["best_cuts", "cut_columns", "mended", "part_of", "split_touching"]

# What says of pieces how sure it is that each is one character (n,), and whether that is an M or
# a W (n,).
Judge = Callable[[Sequence[Piece]], tuple[np.ndarray, np.ndarray]]

_MOST_CUTS = 8
# A cut must be worth this much of the probabilities' logarithm: halves of letters look like I.
_PRICE = 0.2
# In heights of the line: all letters, and all but M and W.
_WIDEST = 1.6
_WIDEST_BUT_MW = 1.25
_TALLEST = 1.15
# What a letter loses that is wider.
_TOO_WIDE = 5.0
_NARROWEST = 0.08
# A character that is as sure as this, and no wider than usual, is left alone.
_SURE = 0.95
_USUAL_WIDTH = 1.15


def cut_columns(mask: np.ndarray, most: int = _MOST_CUTS) -> list[int]:
    """Return the columns where a piece of touching letters may be cut, ascending.

    They are the lowest of the local minima of the ink a column holds, no two of them neighbors.

    Parameters
    ----------
    mask : ndarray of bool, shape (H, W)
    most : int, default 8

    Examples
    --------
    >>> mask = np.ones((10, 9), bool)
    >>> mask[1:, 4] = False
    >>> cut_columns(mask)
    [4]
    """
    height, width = mask.shape
    ink = mask.sum(axis=0).astype(np.float64)
    # Of a flat minimum the middle is taken.
    soft = np.convolve(np.pad(ink, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    margin = max(2, round(_NARROWEST * height))
    inner = np.arange(margin, width - margin)
    if len(inner) == 0:
        return []
    local = (soft[inner] <= soft[inner - 1]) & (soft[inner] <= soft[inner + 1])
    local &= ink[inner] <= 0.5 * height
    found: list[int] = []
    for column in inner[local][np.argsort(soft[inner[local]], kind="stable")].tolist():
        if len(found) == most:
            break
        if all(abs(column - other) >= margin for other in found):
            found.append(column)
    return sorted(found)


def part_of(piece: Piece, start: int, stop: int) -> Piece | None:
    """Return the columns of a piece, without the crumbs that a cut leaves; None if none is left."""
    import cv2

    mask = piece.mask[:, start:stop].astype(np.uint8)
    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
    if n < 2:
        return None
    areas = stats[1:, cv2.CC_STAT_AREA]
    kept = np.concatenate([[False], areas * 20 >= areas.max()])[labels]
    rows, cols = np.flatnonzero(kept.any(axis=1)), np.flatnonzero(kept.any(axis=0))
    place = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    left, top = piece.box.left + start + int(cols[0]), piece.box.top + int(rows[0])
    right, bottom = left + int(cols[-1] - cols[0]) + 1, top + int(rows[-1] - rows[0]) + 1
    return Piece(Box(left, top, right, bottom), kept[place], piece.darkness[:, start:stop][place])


def best_cuts(values: np.ndarray) -> list[int]:
    """Return the way from the first to the last of n places with the largest sum of values.

    Parameters
    ----------
    values : ndarray of shape (n, n)
        Of the step from one place to a later one; −∞ where there is none.

    Returns
    -------
    list of int
        The places between, ascending.

    Examples
    --------
    >>> no = -np.inf
    >>> best_cuts(np.array([[no, -1, -5], [no, no, -1], [no, no, no]]))
    [1]
    """
    n = len(values)
    best, before = np.full(n, -np.inf), np.zeros(n, np.int64)
    best[0] = 0.0
    for j in range(1, n):
        sums = best[:j] + values[:j, j]
        before[j] = int(np.argmax(sums))
        best[j] = sums[before[j]]
    if not np.isfinite(best[-1]):
        return []
    way, j = [], int(before[-1])
    while j > 0:
        way.append(j)
        j = int(before[j])
    return way[::-1]


def split_touching(
    pieces: Sequence[Piece], judged: tuple[np.ndarray, np.ndarray], height: float, judge: Judge
) -> list[list[Piece]]:
    """Return, for each piece, the characters that it is: itself, or its parts.

    A piece that is wide, or of which the classifier is not sure, is cut at the columns of
    :func:`cut_columns` in the way that makes the product of the parts' probabilities largest.

    Parameters
    ----------
    pieces : sequence of Piece
        Of one line.
    judged : tuple of two ndarrays of shape (n,)
        How sure it is that each piece is one character, and whether that is an M or a W.
    height : float
        Of a character of the line.
    judge : callable
        Says the same of other pieces.
    """
    found = [[piece] for piece in pieces]
    sure, broad = judged
    for i, piece in enumerate(pieces):
        wide = piece.box.width > _USUAL_WIDTH * height
        if (sure[i] >= _SURE and not wide) or piece.box.width < 0.5 * height:
            continue
        cuts = cut_columns(piece.mask)
        if cuts:
            value = _value(piece, sure[i], broad[i], height)
            found[i] = _split(piece, [0, *cuts, piece.box.width], value, height, judge)
    return found


def _split(
    piece: Piece, places: list[int], whole: float, height: float, judge: Judge
) -> list[Piece]:
    n = len(places)
    steps: list[tuple[int, int]] = []
    parts: list[Piece] = []
    for i in range(n - 1):
        for j in range(i + 1, n):
            width = places[j] - places[i]
            if (i, j) == (0, n - 1) or not _NARROWEST * height <= width <= _WIDEST * height:
                continue
            part = part_of(piece, places[i], places[j])
            # A letter has the height of its line, or of a small letter at least.
            if part is not None and part.box.height >= 0.4 * height:
                steps.append((i, j))
                parts.append(part)
    if not parts:
        return [piece]
    values = np.full((n, n), -np.inf)
    sure, broad = judge(parts)
    for k, (i, j) in enumerate(steps):
        values[i, j] = _value(parts[k], sure[k], broad[k], height)
    values[0, n - 1] = whole
    way = [0, *best_cuts(values), n - 1]
    if len(way) == 2:
        return [piece]
    at = dict(zip(steps, parts, strict=True))
    return [at[step] for step in pairwise(way)]


def _value(piece: Piece, sure: float, broad: bool, height: float) -> float:
    """Return what a character counts in a row of characters, at most 0."""
    # M and W stand on their line: what hangs below it is two letters, one of them a J.
    hangs = piece.box.height > _TALLEST * height
    widest = _WIDEST if broad and not hangs else _WIDEST_BUT_MW
    too_wide = piece.box.width > widest * height
    return float(np.log(max(sure, 1e-6)) - _PRICE - (_TOO_WIDE if too_wide else 0.0))


def mended(
    pieces: Sequence[Piece], judged: tuple[np.ndarray, np.ndarray], height: float, judge: Judge
) -> list[list[int]]:
    """Return the pieces' numbers by character: strokes of a letter that broke are joined.

    Neighbors are joined where both are near, one of them is doubtful, and the classifier is
    surer of the two as one than of each.

    Parameters
    ----------
    pieces, judged, height, judge
        As in :func:`split_touching`.
    """
    groups = [[i] for i in range(len(pieces))]
    sure, _ = judged
    pairs = [
        i for i in range(len(pieces) - 1)
        if min(sure[i], sure[i + 1]) < _SURE
        and pieces[i + 1].box.left - pieces[i].box.right <= 0.12 * height
        and pieces[i + 1].box.right - pieces[i].box.left <= _USUAL_WIDTH * height
    ]  # fmt: skip
    if not pairs:
        return groups
    likely, _ = judge([joined([pieces[i], pieces[i + 1]]) for i in pairs])
    taken: set[int] = set()
    for share, i in sorted(zip(likely.tolist(), pairs, strict=True), reverse=True):
        if taken & {i, i + 1} or share < 0.5:
            continue
        if np.log(share) > np.log(sure[i] * sure[i + 1] + 1e-12) + _PRICE:
            groups[i], groups[i + 1] = [i, i + 1], []
            taken |= {i, i + 1}
    return [group for group in groups if group]
