"""Preparation of pictures in whole numbers: what a small core computes too, to the bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.datasets import locating
from visionshare.datasets.canvas import Box, border_of, box_of, to_gray

#: A threshold is a whole number of 2^-16.
THRESHOLD_BITS = 16
# Places between two pixels when a picture grows.
_PLACES = 256


class WholeSteps(NamedTuple):
    """The steps that are done, see :class:`visionshare.datasets.Preprocessing`."""

    polarity: str
    contrast: bool
    crop: bool | str
    threshold: int
    fit: str
    margin: int
    center: str


def whole_threshold(threshold: float) -> int:
    """Return a threshold between 0 and 1 as a whole number of 2^-16, at least 1."""
    return max(1, round(threshold * 2**THRESHOLD_BITS))


def prepared(
    picture: np.ndarray, size: tuple[int, int] | None, steps: WholeSteps
) -> tuple[np.ndarray, Box, Box]:
    """Return the raster of a picture, which part it shows, and where that lies in the raster."""
    gray = to_gray(picture)
    values, (top, bottom, left, right), near, ground = _values_and_part(gray, steps)
    part = values[picture[top:bottom, left:right]]
    if near is not None:
        # Ink of others in the box is left out.
        part[~near[top:bottom, left:right]] = ground
    if size is None:
        return part, (top, bottom, left, right), (0, bottom - top, 0, right - left)
    raster, place = _fitted(part, size, steps)
    return raster, (top, bottom, left, right), place


def _values_and_part(
    gray: np.ndarray, steps: WholeSteps
) -> tuple[np.ndarray, Box, np.ndarray | None, int]:
    """Return what becomes of each value, the part that is kept, which of it, and the ground."""
    values = np.arange(256)
    part = (0, gray.shape[0], 0, gray.shape[1])
    near = None
    ground = 0
    if steps.polarity == "as_is":
        return values.astype(np.uint8), part, near, ground
    # Twice the paper: a median lies between two values. What touches the border may be a shadow.
    border = np.sort(gray.ravel() if steps.crop == "located" else border_of(gray))
    n = len(border)
    paper = int(border[(n - 1) // 2]) + int(border[n // 2])
    low = int(gray.min())
    high = int(gray.max())
    dark = steps.polarity == "dark_on_light"
    if steps.polarity == "automatic":
        dark = 2 * high - paper < paper - 2 * low
    if dark:
        values = 255 - values
        paper = 510 - paper
        high = 255 - low
    if steps.crop == "located":
        found = locating.find(values[gray], paper, high, steps.threshold)
        if found is None:
            return np.zeros(256, np.uint8), part, near, ground
        part, near, paper, high = found
        ground = 0 if steps.contrast else paper // 2
    span = 2 * high - paper
    if span <= 0:
        # Nothing but paper.
        values = np.zeros_like(values) if steps.contrast else values
    else:
        if steps.crop is True:
            above = ((2 * values - paper) << THRESHOLD_BITS) > steps.threshold * span
            part = box_of((above | (values == high))[gray])
        if steps.contrast:
            stretched = (2 * values - paper) * 255
            # To the nearest, halves up.
            values = np.clip((2 * stretched + span) // (2 * span), 0, 255)
    return values.astype(np.uint8), part, near, ground


def _fitted(part: np.ndarray, size: tuple[int, int], steps: WholeSteps) -> tuple[np.ndarray, Box]:
    """Return the raster of a part of a picture, and its box there."""
    # 1) the size of the box
    height, width = part.shape[:2]
    box = size
    is_larger = False
    if steps.fit != "resize":
        rows, cols = (side - 2 * steps.margin for side in size)
        # The side that is short of room says how much larger all becomes.
        to, of = (rows, height) if rows * width <= cols * height else (cols, width)
        is_larger = to > of
        if steps.fit == "center" and is_larger:
            box = height, width
        else:
            box = tuple(max(1, (2 * side * to + of) // (2 * of)) for side in (height, width))
    raster = _smooth(part, box) if is_larger else _means(part, box)
    # 2) its place on the canvas
    places = [(side - length) // 2 for side, length in zip(size, box, strict=True)]
    if steps.center == "mass":
        places = _by_mass(to_gray(raster), size)
    y, x = places
    canvas = np.zeros((*size, *part.shape[2:]), np.uint8)
    canvas[y : y + box[0], x : x + box[1]] = raster
    return canvas, (y, y + box[0], x, x + box[1])


def _means(part: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return pixels that are means of what they cover, or copies of the nearest."""
    sums = part.astype(np.int64)
    counts = []
    for axis, n in enumerate(size):
        begins, ends = _windows(part.shape[axis], n)
        totals = np.concatenate([np.zeros_like(sums.take([0], axis)), sums.cumsum(axis)], axis)
        sums = totals.take(ends, axis) - totals.take(begins, axis)
        counts.append(ends - begins)
    count = np.multiply.outer(*counts).reshape(*size, *(1,) * (part.ndim - 2))
    return np.asarray((sums + count // 2) // count, np.uint8)


def _windows(side: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first pixel of each of n windows of a side, and the one after its last."""
    numbers = np.arange(n + 1, dtype=np.int64)
    if side < n:
        begins = (2 * numbers[:-1] + 1) * side // (2 * n)
        return begins, begins + 1
    edges = (2 * numbers * side + n) // (2 * n)
    return edges[:-1], edges[1:]


def _smooth(part: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return pixels between a smaller picture's pixels, in proportion to their nearness."""
    sums = part.astype(np.int64)
    for axis in (1, 0):
        side = part.shape[axis]
        n = size[axis]
        # Beyond the middles of the outermost pixels there is nothing new.
        place = ((2 * np.arange(n, dtype=np.int64) + 1) * side - n) * (_PLACES // 2) // n
        place = np.clip(place, 0, (side - 1) * _PLACES)
        # The two pixels that each lies between, and the second one's share of 256.
        first = place // _PLACES
        second = np.minimum(first + 1, side - 1)
        share = (place % _PLACES).reshape(-1, *(1,) * (part.ndim - 1 - axis))
        sums = (_PLACES - share) * sums.take(first, axis) + share * sums.take(second, axis)
    return np.asarray((sums + _PLACES**2 // 2) // _PLACES**2, np.uint8)


def _by_mass(gray: np.ndarray, size: tuple[int, int]) -> list[int]:
    """Return where a picture must begin for its center of mass to be in the canvas's middle."""
    weights = gray.astype(np.int64)
    if not weights.any():
        weights = np.ones_like(weights)
    total = int(weights.sum())
    places = []
    for axis, side in enumerate(size):
        length = weights.shape[axis]
        moment = int(weights.sum(axis=1 - axis) @ np.arange(length))
        place = (side * total - 2 * moment) // (2 * total)
        places.append(min(max(place, 0), side - length))
    return places
