"""Sums of patches where maxima are: what gradients through maxima are made of.

A maximum has the derivative of the response where it is, so that of all positions few count. They
are listed, as entries with a place and a factor, and added in registers entry by entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.templates.intrinsics import (
    LANES,
    MOST_ROWS,
    MOST_VECTORS,
    gather_rows,
)


class Entries(NamedTuple):
    """Where the rows of each entry begin, and what they are multiplied with."""

    starts: np.ndarray
    factors: np.ndarray


class Rows(NamedTuple):
    """Floats in rows: those from a row to the next are ``line``."""

    values: np.ndarray
    line: int


@njit(cache=True, nogil=True)
def empty_entries(n: int) -> Entries:
    """Return room for ``n`` entries."""
    return Entries(np.empty(n, np.int64), np.empty(n, np.float32))


@njit(cache=True, nogil=True)
def filled(length: int) -> int:
    """Return the floats of whole vectors that hold ``length``."""
    return (length + LANES - 1) // LANES * LANES


@njit(cache=True, nogil=True)
def _step(left: int, most: int) -> int:
    """Return how many are summed together: one alone only where nothing else is left."""
    return 2 if left == most + 1 else min(left, most)


@njit(cache=True, nogil=True)
def add_together(
    source: Rows, entries: Entries, n: int, rows: int, length: int, out: Rows, to: int
) -> None:
    """Add ``n`` entries of ``rows`` rows of ``length`` floats to the rows that begin at ``to``."""
    read = uncounted(source.values)
    written = uncounted(out.values)
    starts = uncounted(entries.starts)
    factors = uncounted(entries.factors)
    vectors = filled(length) // LANES
    y = 0
    while y < rows:
        together = _step(rows - y, MOST_ROWS)
        v = 0
        while v < vectors:
            beside = _step(vectors - v, MOST_VECTORS)
            tile = read[y * source.line + v * LANES :]
            place = to + y * out.line + v * LANES
            gather_rows(
                tile, source.line, starts, factors, n, together, beside, written, place, out.line
            )
            v += beside
        y += together
