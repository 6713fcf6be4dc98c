"""Which pixels a pattern compares, and the code of every pattern."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Weights are whole multiples of 1 / 4096. Sums over bytes are exact then: whether a neighbor is as
# bright as its center is the same in float32, in whole numbers, in C and in ONNX.
_UNIT = 4096


class Circle(NamedTuple):
    """Pixels whose weighted sums are the values on a circle; point p has starts[p] … of them."""

    rows: np.ndarray
    cols: np.ndarray
    weights: np.ndarray
    starts: np.ndarray


def circle(radius: float, points: int) -> Circle:
    """Return the taps of bilinear interpolation on a circle, counterclockwise from the right."""
    angles = 2 * np.pi * np.arange(points) / points
    # Rounded, so that a point that is a pixel is one.
    down = np.round(-radius * np.sin(angles), 5)
    right = np.round(radius * np.cos(angles), 5)
    rows = np.floor(down)
    cols = np.floor(right)
    y = down - rows
    x = right - cols
    fractions = np.stack([(1 - y) * (1 - x), (1 - y) * x, y * (1 - x), y * x], axis=1)
    weights = np.round(fractions * _UNIT) / _UNIT
    used = weights > 0
    all_rows = np.stack([rows, rows, rows + 1, rows + 1], axis=1)
    all_cols = np.stack([cols, cols + 1, cols, cols + 1], axis=1)
    return Circle(
        all_rows[used].astype(np.int64),
        all_cols[used].astype(np.int64),
        weights[used].astype(np.float32),
        np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int64),
    )


def codes_of_patterns(points: int, rotations: bool) -> np.ndarray:
    """Return the code of every pattern, (2^points,) int64; bit p of a pattern is point p."""
    # A pattern is uniform if it changes at most twice around the circle. The code of a uniform
    # one is its number of ones; with rotations, also where they begin. All others share the last
    # code.
    bits = (np.arange(2**points)[:, None] >> np.arange(points)) & 1
    changes = np.sum(bits != np.roll(bits, 1, axis=1), axis=1)
    ones = bits.sum(axis=1)
    if not rotations:
        return np.where(changes <= 2, ones, points + 1)
    # The one that follows a zero begins the run.
    first = np.argmax((bits == 1) & (np.roll(bits, 1, axis=1) == 0), axis=1)
    codes = 1 + (ones - 1) * points + (points - first) % points
    codes = np.where(ones == 0, 0, np.where(ones == points, points * (points - 1) + 1, codes))
    return np.where(changes <= 2, codes, points * (points - 1) + 2)
