"""The one normalizer of characters: ink alone, light on black, in a box on a canvas.

Characters rendered from fonts to train, pictures of one character to classify, and pages to read
all come through :func:`normalize_character`, so that a classifier sees in use what it learned.
"""

from __future__ import annotations

import numpy as np

from visionshare.datasets.canvas import Box, Placement, box_of, box_size, on_canvas

# Ink fainter than this is not stretched to full white.
_MIN_LIGHTEST = 64.0
_NEIGHBORHOOD = np.ones((3, 3), np.uint8)


def ink_alone(darkness: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return a character cut to its box: its ink light on black, without neighbors in the box."""
    if not mask.any():
        return np.zeros((1, 1), np.uint8)
    return _alone(darkness, mask, box_of(mask))


def _alone(darkness: np.ndarray, mask: np.ndarray, box: Box) -> np.ndarray:
    import cv2

    top, bottom, left, right = box
    # One pixel around the mask is still edge, not neighbor.
    inside = np.ascontiguousarray(mask[top:bottom, left:right], np.uint8)
    near = cv2.dilate(inside, _NEIGHBORHOOD)
    return darkness[top:bottom, left:right] * near


def normalize_character(
    darkness: np.ndarray,
    mask: np.ndarray,
    size: tuple[int, int] = (28, 28),
    margin: int = 3,
    center: str = "box",
) -> np.ndarray:
    """Return a character as classifiers see it: its ink alone, light on black, centered."""
    return place_character(darkness, mask, size, margin, center)[0]


def place_character(
    darkness: np.ndarray, mask: np.ndarray, size: tuple[int, int], margin: int, center: str
) -> tuple[np.ndarray, Placement]:
    """Return what :func:`normalize_character` does, and where the character lies in it."""
    import cv2

    if not mask.any():
        height, width = mask.shape
        whole = Placement((0, height, 0, width), (0, size[0], 0, size[1]))
        return np.zeros(size, np.uint8), whole
    part = box_of(mask)
    values = _alone(darkness, mask, part)
    # Proportions are kept; the upper quartile of the ink becomes 255.
    inside = mask[part[0] : part[1], part[2] : part[3]]
    lightest = max(_MIN_LIGHTEST, _upper_quartile(values[inside]))
    (height, width), scale = box_size(values.shape, size, margin)
    # Means of areas where it shrinks; interpolated where it grows.
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    resized = cv2.resize(values, (width, height), interpolation=interpolation).astype(np.float32)
    white = np.minimum(np.round(resized * (255 / lightest)), 255).astype(np.uint8)
    raster, place = on_canvas(white, size, center)
    return raster, Placement(part, place)


def _upper_quartile(values: np.ndarray) -> float:
    """Return ``np.percentile(values, 75)`` of uint8 values, ten times as fast for few."""
    place = 0.75 * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    ordered = np.partition(values, (below, above))
    low = float(ordered[below])
    return low + (float(ordered[above]) - low) * (place - below)


def without_specks(mask: np.ndarray, ratio: int = 50) -> np.ndarray:
    """Return a mask without the pieces that are many times smaller than its largest."""
    import cv2

    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if n <= 2:
        return mask
    areas = stats[:, cv2.CC_STAT_AREA].copy()
    # The ground is no piece.
    areas[0] = 0
    return (areas * ratio >= areas.max())[labels]
