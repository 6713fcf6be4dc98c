"""The one normalizer of characters: ink alone, light on black, in a box on a canvas.

Characters rendered from fonts to train, pictures of one character to classify, and pages to read
all come through :func:`normalize_character`, so that a classifier sees in use what it learned.
"""

from __future__ import annotations

import numpy as np

from visionshare.datasets.canvas import box_size, canvas_place, on_canvas
from visionshare.datasets.placement import Placement

# Ink fainter than this is not stretched to full white.
_MIN_LIGHTEST = 64.0
_NEIGHBORHOOD = np.ones((3, 3), np.uint8)


def ink_alone(darkness: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return a character cut to its box: its ink light on black, without neighbors in the box."""
    alone, _ = _cut(darkness, mask)
    return alone


def normalize_character(
    darkness: np.ndarray,
    mask: np.ndarray,
    size: tuple[int, int] = (28, 28),
    margin: int = 3,
    center: str = "box",
) -> np.ndarray:
    """Return a character as classifiers see it: its ink alone, light on black, centered."""
    # Its proportions are kept; its values are scaled so that the upper quartile of its ink is
    # 255.
    return place_character(darkness, mask, size, margin, center)[0]


def place_character(
    darkness: np.ndarray,
    mask: np.ndarray,
    size: tuple[int, int] = (28, 28),
    margin: int = 3,
    center: str = "box",
) -> tuple[np.ndarray, Placement]:
    """Return what :func:`normalize_character` does, and where the character lies in it."""
    import cv2

    values, inside = _cut(darkness, mask)
    if not inside.any():
        height, width = mask.shape
        whole = Placement((0, height, 0, width), (0, size[0], 0, size[1]))
        return np.zeros(size, np.uint8), whole
    lightest = max(_MIN_LIGHTEST, float(np.percentile(values[inside], 75)))
    (height, width), scale = box_size(values.shape, size, margin)
    # Means of areas where it shrinks; interpolated where it grows.
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    shrunk = cv2.resize(values, (width, height), interpolation=interpolation).astype(np.float32)
    white = np.minimum(np.round(shrunk * (255 / lightest)), 255).astype(np.uint8)
    rows, cols = _box(mask)
    part = (rows.start, rows.stop, cols.start, cols.stop)
    return on_canvas(white, size, center), Placement(part, canvas_place(white, size, center))


def without_specks(mask: np.ndarray, ratio: int = 50) -> np.ndarray:
    """Return a mask without the pieces that are many times smaller than its largest."""
    import cv2

    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if n <= 2:
        return mask
    areas = stats[:, cv2.CC_STAT_AREA].copy()
    areas[0] = 0
    kept: np.ndarray = (areas * ratio >= areas.max())[labels]
    return kept


def _cut(darkness: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a character's darkness without neighbors and its mask, both cut to its box."""
    import cv2

    if not mask.any():
        return np.zeros((1, 1), np.uint8), np.zeros((1, 1), bool)
    box = _box(mask)
    inside = mask[box]
    # One pixel around the mask is still edge, not neighbor.
    near = cv2.dilate(np.ascontiguousarray(inside, np.uint8), _NEIGHBORHOOD)
    return darkness[box] * near, inside


def _box(mask: np.ndarray) -> tuple[slice, slice]:
    """Return the smallest box that holds all of a mask, which is not empty."""
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)
