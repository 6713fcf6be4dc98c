"""Skew: the angle of a page's lines, and the page turned back."""

from __future__ import annotations

import numpy as np

from visionshare.reading.page import Box

__all__ = ["estimate_skew", "rotated", "turned_box"]

_MAX_ANGLE = 6.0
_MAX_POINTS = 40_000


def estimate_skew(mask: np.ndarray, max_angle: float = _MAX_ANGLE) -> float:
    """Return by how many degrees the lines of text sink to the right; 0 where it is not clear."""
    # The angle at which the ink's projection on the vertical has the largest sum of squared
    # differences of neighboring rows: lines of text give sharp edges. First in steps of a quarter
    # of a degree, then finer.
    ys, xs = np.nonzero(mask)
    if len(ys) < 50:
        return 0.0
    if len(ys) > _MAX_POINTS:
        # Evenly spread and always the same, so that reading a page again gives the same text.
        chosen = np.linspace(0, len(ys) - 1, _MAX_POINTS).astype(np.int64)
        ys = ys[chosen]
        xs = xs[chosen]
    ys = ys.astype(np.float64)
    xs = xs.astype(np.float64) - mask.shape[1] / 2
    coarse = np.arange(-max_angle, max_angle + 1e-9, 0.25)
    first = coarse[int(np.argmax([_edge_energy(ys, xs, angle) for angle in coarse]))]
    fine = first + np.arange(-0.25, 0.2501, 0.05)
    scores = [_edge_energy(ys, xs, angle) for angle in fine]
    best = float(fine[int(np.argmax(scores))])
    # A page whose edges are as sharp without a turn is left alone: turning blurs.
    if max(scores) < 1.02 * _edge_energy(ys, xs, 0.0):
        return 0.0
    return round(best, 2)


def _edge_energy(ys: np.ndarray, xs: np.ndarray, angle: float) -> float:
    """Return the sum of squared differences of the projection's neighboring rows."""
    heights = ys - xs * np.tan(np.deg2rad(angle))
    bins = np.floor(heights - heights.min()).astype(np.int64)
    counts = np.bincount(bins).astype(np.float64)
    # Edges of lines are a pixel or two soft.
    counts = np.convolve(counts, [1.0, 1.0])
    return float(np.sum(np.diff(counts, prepend=0.0, append=0.0) ** 2))


def rotated(gray: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Return an image whose lines sank by an angle with level lines, and the map back."""
    import cv2

    height, width = gray.shape
    forth = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0)
    turned = cv2.warpAffine(
        gray, forth, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return turned, np.asarray(cv2.invertAffineTransform(forth))


def turned_box(box: Box, back: np.ndarray, width: int, height: int) -> Box:
    """Return the box around a box that was turned, inside an image."""
    left, top, right, bottom = box
    corners = np.array([[x, y, 1.0] for x in (left, right) for y in (top, bottom)])
    points = corners @ back.T
    low = np.floor(points.min(axis=0) + 0.5)
    high = np.ceil(points.max(axis=0) - 0.5)
    x0 = int(np.clip(low[0], 0, width - 1))
    y0 = int(np.clip(low[1], 0, height - 1))
    x1 = int(np.clip(high[0], x0 + 1, width))
    y1 = int(np.clip(high[1], y0 + 1, height))
    return Box(x0, y0, x1, y1)
