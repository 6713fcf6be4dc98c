"""Preparation in whole numbers: against the same steps a pixel at a time, and against floats."""

from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare.datasets import Preprocessing
from visionshare.errors import InputError

HALF = Fraction(1, 2)
STEPS = [
    {},
    {"fit": "center"},
    {"fit": "box", "margin": 1},
    {"polarity": "dark_on_light"},
    {"polarity": "automatic", "contrast": True},
    {"polarity": "light_on_dark", "crop": True, "fit": "center"},
    {"polarity": "automatic", "crop": True, "threshold": 0.7, "fit": "box"},
    {"polarity": "automatic", "contrast": True, "crop": True, "fit": "box", "margin": 2,
     "center": "mass"},
    {"polarity": "dark_on_light", "contrast": True, "crop": True, "fit": "box", "margin": 0.2,
     "center": "mass"},
]  # fmt: skip


def _pictures(n, seed=0):
    """Yield pictures of many sizes: noise, ink on paper, plain ones."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        height, width = rng.integers(1, 48, 2)
        low, high = np.sort(rng.integers(0, 256, 2))
        picture = rng.integers(low, high + 1, (height, width)).astype(np.uint8)
        if number % 3 == 0:
            ink = rng.random((height, width)) < 0.1
            picture = np.where(ink, high, low).astype(np.uint8)
        yield picture, tuple(int(side) for side in rng.integers(5, 20, 2))


def _rounded(value):
    return floor(value + HALF)


def _plain(picture, size, steps):
    """Return the raster by fractions, a pixel at a time."""
    rows = [[int(v) for v in row] for row in picture]
    height, width = picture.shape
    if steps.polarity != "as_is":
        rows = _plain_ink(rows, steps)
        height, width = len(rows), len(rows[0])
    box, smooth = size, False
    if steps.fit != "resize":
        margin = steps.margin_in(size)
        scale = min(Fraction(a - 2 * margin, b) for a, b in zip(size, (height, width), strict=True))
        box, smooth = tuple(max(1, _rounded(s * scale)) for s in (height, width)), scale > 1
        box = (height, width) if steps.fit == "center" and smooth else box
    pixel = _between if smooth and steps.fit != "center" else _mean
    raster = [[pixel(rows, y, x, box) for x in range(box[1])] for y in range(box[0])]
    top, left = ((size[axis] - box[axis]) // 2 for axis in (0, 1))
    if steps.center == "mass":
        weights = raster if any(map(any, raster)) else [[1] * box[1]] * box[0]
        total = sum(map(sum, weights))
        down = Fraction(sum(y * sum(row) for y, row in enumerate(weights)), total)
        across = Fraction(sum(x * v for row in weights for x, v in enumerate(row)), total)
        top, left = (
            min(max(_rounded(Fraction(side - 1, 2) - mean), 0), side - length)
            for side, mean, length in zip(size, (down, across), box, strict=True)
        )
    canvas = np.zeros(size, np.uint8)
    canvas[top : top + box[0], left : left + box[1]] = raster
    return canvas


def _plain_ink(rows, steps):
    height, width = len(rows), len(rows[0])
    border = sorted(
        rows[y][x]
        for y in range(height)
        for x in range(width)
        if y in (0, height - 1) or x in (0, width - 1)
    )
    if height == 1 or width == 1:
        # A line is its own first and last one.
        border = sorted((rows[0] + rows[-1]) if height == 1 else [
            *rows[0], *rows[-1], *(v for row in rows[1:-1] for v in (row[0], row[-1]))
        ])  # fmt: skip
    paper = Fraction(border[(len(border) - 1) // 2] + border[len(border) // 2], 2)
    values = [v for row in rows for v in row]
    dark = steps.polarity == "dark_on_light"
    if steps.polarity == "automatic":
        dark = max(values) - paper < paper - min(values)
    if dark:
        rows, paper = [[255 - v for v in row] for row in rows], 255 - paper
    top = max(v for row in rows for v in row)
    if top <= paper:
        return [[0] * width] * height if steps.contrast else rows
    if steps.crop:
        level = paper + Fraction(max(1, round(steps.threshold * 65536)), 65536) * (top - paper)
        inked = {top} | {v for v in {v for row in rows for v in row} if v > level}
        ink = [(y, x) for y in range(height) for x in range(width) if rows[y][x] in inked]
        ys, xs = zip(*ink, strict=True)
        rows = [row[min(xs) : max(xs) + 1] for row in rows[min(ys) : max(ys) + 1]]
    if steps.contrast:
        shown = {
            v: min(max(_rounded((v - paper) * 255 / (top - paper)), 0), 255)
            for v in {v for row in rows for v in row}
        }
        rows = [[shown[v] for v in row] for row in rows]
    return rows


@cache
def _covered(side, n, i):
    if side < n:
        return [floor((i + HALF) * side / n)]
    return [p for p in range(side) if i * side < (p + HALF) * n <= (i + 1) * side]


def _mean(rows, y, x, box):
    values = [rows[r][c] for r in _covered(len(rows), box[0], y)
              for c in _covered(len(rows[0]), box[1], x)]  # fmt: skip
    return _rounded(Fraction(sum(values), len(values)))


@cache
def _place(side, n, i):
    """Return the pixels around a place, and how many of 256 parts it is beyond the first."""
    at = min(max(floor(256 * ((i + HALF) * side / n - HALF)), 0), 256 * (side - 1))
    return at // 256, min(at // 256 + 1, side - 1), at % 256


def _between(rows, y, x, box):
    top, bottom, down = _place(len(rows), box[0], y)
    left, right, across = _place(len(rows[0]), box[1], x)
    upper, lower = ((256 - across) * rows[r][left] + across * rows[r][right] for r in (top, bottom))
    return _rounded(Fraction((256 - down) * upper + down * lower, 1 << 16))


@pytest.mark.parametrize("options", STEPS)
def test_each_step_is_that_of_fractions(options):
    steps = Preprocessing(**options, arithmetic="whole")
    for picture, size in _pictures(40):
        assert_array_equal(steps.apply(picture, size), _plain(picture, size, steps))


@pytest.mark.parametrize("options", STEPS)
def test_floats_show_the_same(options):
    steps, floats = Preprocessing(**options, arithmetic="whole"), Preprocessing(**options)
    rng = np.random.default_rng(3)
    for _ in range(10):
        # Smooth pictures: one row more or less of a mean changes little.
        height, width = rng.integers(20, 60, 2)
        y, x = np.mgrid[:height, :width] / np.array([height, width]).reshape(2, 1, 1) - 0.5
        blob = np.exp(-20 * ((y - 0.05) ** 2 + (x + 0.1) ** 2))
        picture = (30 + 190 * blob).astype(np.uint8)
        ours, theirs = steps.apply(picture, (16, 16)), floats.apply(picture, (16, 16))
        assert np.abs(ours.astype(int) - theirs).mean() < 6


def test_colors_are_prepared_by_their_gray():
    rng = np.random.default_rng(0)
    gray = rng.integers(0, 256, (30, 21), np.uint8)
    for options in STEPS:
        steps = Preprocessing(**options, arithmetic="whole")
        colored = steps.apply(np.repeat(gray[..., None], 3, axis=2), (9, 12))
        assert_array_equal(colored, np.repeat(steps.apply(gray, (9, 12))[..., None], 3, axis=2))


def test_the_placement_is_told():
    picture = np.zeros((40, 60), np.uint8)
    picture[10:30, 20:24] = 200
    steps = Preprocessing("light_on_dark", crop=True, fit="box", margin=1, arithmetic="whole")
    raster, placement = steps.place(picture, (7, 5))
    assert (placement.part, placement.place) == ((10, 30, 20, 24), (1, 6, 2, 3))
    assert_array_equal(steps.apply(picture), picture[10:30, 20:24])
    assert raster[3].tolist() == [0, 0, 200, 0, 0]


def test_files_say_it_only_where_it_is_not_as_before():
    whole = Preprocessing("automatic", arithmetic="whole")
    assert Preprocessing.from_values(whole.to_values()) == whole
    assert "arithmetic" not in Preprocessing("automatic").to_values()
    assert "whole numbers" in whole.describe()[-1]
    for options in ({"arithmetic": "half"}, {"arithmetic": "whole", "fit": "character"}):
        with pytest.raises(InputError):
            Preprocessing("automatic", **options)
