"""Pieces of ink: connected components of a page that may be characters or parts of them."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from visionshare.datasets.ink import Ink
from visionshare.errors import DataError
from visionshare.reading.page import Box, enclosing_box

MAX_PIECES = 20_000
# Smaller pieces are dust at any resolution at which characters can be told apart.
_MIN_PIXELS = 4
_MIN_HEIGHT = 6


@dataclass(frozen=True)
class Piece:
    """A piece of ink."""

    box: Box
    mask: np.ndarray
    darkness: np.ndarray


def find_pieces(ink: Ink, max_pieces: int = MAX_PIECES) -> list[Piece]:
    """Return the connected pieces of ink that are neither dust nor rules, frames or pictures."""
    # Pixels that touch at a corner are connected. Where nothing is 6 pixels high, nothing can be
    # read, and there are none.
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink.mask.astype(np.uint8))
    large = stats[1:, cv2.CC_STAT_AREA] >= _MIN_PIXELS
    numbers = 1 + np.flatnonzero(large)
    if len(numbers) > max_pieces:
        raise DataError(
            f"the page has {len(numbers)} pieces of ink, more than {max_pieces}: no page of text, "
            "or a noisy scan"
        )
    boxes = [Box(x, y, x + w, y + h) for x, y, w, h in stats[numbers, :4].tolist()]
    height = typical_height(boxes)
    if height == 0:
        return []
    pieces = []
    for number, box in zip(numbers.tolist(), boxes, strict=True):
        # A shadow at the page's edge reaches from its top to its bottom.
        is_shadow = box.height == len(ink.mask) and box.height > 1.5 * height
        if is_shadow or _is_rule_or_picture(box, height):
            continue
        window = slice(box.top, box.bottom), slice(box.left, box.right)
        pieces.append(Piece(box, labels[window] == number, ink.darkness[window]))
    return pieces


def with_gaps_closed(ink: Ink) -> Ink:
    """Return the ink with the gaps between the segments of a display's digits closed."""
    mask = ink.mask.astype(np.uint8)
    # Strokes are twice as thick as their middle is away from their edge.
    distance = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
    inside = distance[distance > 0]
    thick = 2 * float(np.percentile(inside, 90)) if len(inside) else 0.0
    side = max(3, 2 * round(0.25 * thick) + 1)
    # Decimal signs are squares, segments are longer: they stay apart.
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
    widths, heights = stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]
    longer = np.maximum(widths, heights)
    is_dot = (longer <= 1.5 * np.minimum(widths, heights)) & (longer <= 1.5 * thick + 1)
    dots = is_dot[labels] & (mask > 0)
    rest = np.where(dots, 0, mask).astype(np.uint8)
    closed = cv2.morphologyEx(rest, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8))
    around = cv2.dilate(dots.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return Ink((closed > 0) & ~around | (mask > 0), ink.darkness, ink.light_on_dark)


def typical_height(boxes: list[Box]) -> float:
    """Return the height of a character, of these boxes: their median by ink, without dust."""
    # Taller boxes weigh more, so that many specks and dots do not decide.
    heights = np.sort([b.height for b in boxes if b.height >= _MIN_HEIGHT])
    if len(heights) == 0:
        return 0.0
    # A frame, a picture or a heading weighs little more than a character.
    weights = np.cumsum(np.minimum(heights, 1.5 * np.median(heights)))
    return float(heights[np.searchsorted(weights, weights[-1] / 2)])


def _is_rule_or_picture(box: Box, height: float) -> bool:
    longer = max(box.width, box.height)
    shorter = min(box.width, box.height)
    if longer > 12 * shorter and longer > 3 * height:
        return True
    # A frame is mostly empty, a picture is large both ways, and touching letters are neither.
    large = box.width > 4 * height and box.height > 4 * height
    return large or (box.height > 6 * height and box.width > 2 * height)


def joined(pieces: list[Piece]) -> Piece:
    """Return pieces as one: the letter of a broken stroke, or of a dot and its stem."""
    if len(pieces) == 1:
        return pieces[0]
    box = enclosing_box([piece.box for piece in pieces])
    mask = np.zeros((box.height, box.width), bool)
    darkness = np.zeros((box.height, box.width), np.uint8)
    for piece in pieces:
        y = piece.box.top - box.top
        x = piece.box.left - box.left
        window = slice(y, y + piece.box.height), slice(x, x + piece.box.width)
        mask[window] |= piece.mask
        np.maximum(darkness[window], piece.darkness, out=darkness[window])
    return Piece(box, mask, darkness)
