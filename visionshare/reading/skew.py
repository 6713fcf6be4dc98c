"""Skew: the angle of a page's lines, and the page turned back."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.reading.page import Box

_MAX_ANGLE = 6.0
_MAX_INK = 80_000


def estimate_skew(mask: np.ndarray, max_angle: float = _MAX_ANGLE) -> float:
    """Return by how many degrees the lines of text sink to the right; 0 where it is not clear."""
    # The angle at which the ink's projection on the vertical has the largest sum of squared
    # differences of neighboring rows: lines of text give sharp edges. First in steps of a quarter
    # of a degree, then finer.
    if np.count_nonzero(mask) < 50:
        return 0.0
    # Within a column only the upper and lower edges of strokes change the projection. Of pages,
    # evenly spread columns count: always the same, so that reading again gives the same text.
    step = np.count_nonzero(mask) // _MAX_INK + 1
    columns = np.pad(mask[:, ::step], ((0, 1), (0, 0)))
    ys, xs = np.nonzero(np.diff(columns, axis=0, prepend=False))
    signs = np.where(columns[ys, xs], 1.0, -1.0)
    xs = xs * step
    points = np.stack([ys, xs - mask.shape[1] / 2, signs])
    coarse = np.arange(-max_angle, max_angle + 1e-9, 0.25)
    first = coarse[int(np.argmax(_energies(points, coarse)))]
    fine = first + np.arange(-0.25, 0.2501, 0.05)
    scores = _energies(points, fine)
    best = float(fine[int(np.argmax(scores))])
    # A page whose edges are as sharp without a turn is left alone: turning blurs.
    if scores.max() < 1.02 * _energies(points, np.zeros(1))[0]:
        return 0.0
    return round(best, 2)


def _energies(points: np.ndarray, angles: np.ndarray) -> np.ndarray:
    tangents = np.tan(np.deg2rad(angles))
    ys, xs, signs = points
    n_rows = int(np.ptp(ys) + 2 * np.abs(xs).max() * np.abs(tangents).max()) + 4
    return np.asarray(_edge_energies(ys, xs, signs, tangents, n_rows))


@njit(cache=True, nogil=True)
def _edge_energies(
    ys: np.ndarray, xs: np.ndarray, signs: np.ndarray, tangents: np.ndarray, n_rows: int
) -> np.ndarray:
    """Return the sum of squared differences of the projection's neighboring rows, for each turn."""
    energies = np.empty(len(tangents))
    for k in range(len(tangents)):
        lowest = np.inf
        for i in range(len(ys)):
            lowest = min(lowest, ys[i] - xs[i] * tangents[k])
        steps = np.zeros(n_rows)
        for i in range(len(ys)):
            # Edges of lines are a pixel or two soft.
            row = int(ys[i] - xs[i] * tangents[k] - lowest) + 1
            steps[row] += signs[i]
            steps[row + 1] += signs[i]
        energies[k] = (steps * steps).sum()
    return energies


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
