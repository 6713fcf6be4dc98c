"""Steps over vectors of floats against loops."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

from visionshare.generators.layers.templates.intrinsics import (
    LANES,
    MOST_ROWS,
    MOST_VECTORS,
    NARROW_POSITIONS,
    TEMPLATE_TILES,
    WIDEST,
    gather_rows,
    largest,
    respond,
)

rng = np.random.default_rng(0)


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)


@njit
def call_respond(pixels, starts, first, n, row, rows, length, taps, width, sums):
    respond(
        pixels, starts, first, n, row, rows, length,
        taps, width, length * width, width, width, taps, 0, 0, sums, 0, width,
    )  # fmt: skip


@njit
def call_largest(sums, n, width, names, out, places, with_places):
    largest(sums, 0, n, width, names, 1, out, places, 0, with_places)


@njit
def call_gather(source, line, starts, factors, n, rows, vectors, out, to, out_line):
    gather_rows(source, line, starts, factors, n, rows, vectors, out, to, out_line)


@pytest.mark.parametrize(("n", "width"), TEMPLATE_TILES)
def test_responses_are_sums_of_taps(width, n):
    pixels, taps = floats(7 * 11), floats(1 + 3 * 5, width)
    starts = rng.integers(0, 40, NARROW_POSITIONS + 2)
    sums = np.full(n * width + 1, np.float32(7))
    call_respond(pixels, starts, 2, n, 11, 3, 5, taps.ravel(), width, sums)
    patches = np.array([
        [pixels[s + 11 * y : s + 11 * y + 5] for y in range(3)] for s in starts[2 : 2 + n]
    ]).reshape(n, 15)  # fmt: skip
    expected = patches @ taps[1:] + taps[0]
    assert_allclose(sums[:-1].reshape(n, width), expected, rtol=1e-4, atol=1e-5)
    assert sums[-1] == 7


@pytest.mark.parametrize("width", [w for w in (4, 8, 16, 32) if w <= WIDEST])
def test_largest_and_where_it_is_first(width):
    sums = rng.integers(-3, 4, (5, width)).astype(np.float32)
    sums[:, 0] = -1
    names = np.array([99, 10, 20, 30, 40, 50])
    out, places = np.empty(width, np.float32), np.empty(width, np.int32)
    call_largest(sums.ravel(), 5, width, names, out, places, 1)
    assert_array_equal(out, sums.max(axis=0).clip(0))
    expected = np.where(out > 0, names[1:][sums.argmax(axis=0)], -1)
    assert_array_equal(places, expected)
    places[:] = 3
    call_largest(sums.ravel(), 4, width, names, out, places, 0)
    assert_array_equal(out, sums[:4].max(axis=0).clip(0))
    assert_array_equal(places, 3)


@pytest.mark.parametrize("rows", range(1, MOST_ROWS + 1))
@pytest.mark.parametrize("vectors", range(1, MOST_VECTORS + 1))
def test_rows_are_gathered(rows, vectors):
    length, line, out_line = vectors * LANES, 70, 81
    source, factors = floats(400), floats(9)
    starts = rng.integers(0, 100, 9)

    def tile(begin, step):
        return (begin + step * np.arange(rows)[:, None] + np.arange(length)).ravel()

    gathered = floats(400)
    expected = gathered.astype(np.float64)
    for e in range(6):
        expected[tile(5, out_line)] += np.float64(factors[e]) * source[tile(starts[e], line)]
    call_gather(source, line, starts, factors, 6, rows, vectors, gathered, 5, out_line)
    assert_allclose(gathered, expected, rtol=1e-4, atol=1e-5)
