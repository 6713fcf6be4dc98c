"""Sums of patches, or of templates, where maxima are: what gradients through maxima are made of.

A maximum has the derivative of the response where it is, so that of all positions few count. They
are listed, as entries with a place and a factor, and added in registers entry by entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.vectors import LANES, MOST_ROWS, MOST_VECTORS, add_rows

__all__ = [
    "Entries",
    "Rows",
    "add_entries",
    "add_sorted",
    "empty_entries",
    "filled",
    "sort_entries",
]


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
    """Return how many are summed together: none alone where it can be, as sums wait for each other."""
    return 2 if left == most + 1 and most > 2 else min(left, most)


@njit(cache=True, nogil=True)
def add_entries(
    source: Rows, entries: Entries, first: int, last: int, rows: int, length: int, out: Rows, to: int
) -> None:  # fmt: skip
    """Add the entries from ``first`` to ``last``, ``rows`` rows of ``length`` floats each.

    They are added to the rows of ``out`` that begin at ``to``. Whole vectors are read and written.
    """
    read, written = borrowed(source.values), borrowed(out.values)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    y, vectors = 0, (length + LANES - 1) // LANES
    while y < rows:
        together, v = _step(rows - y, MOST_ROWS), 0
        while v < vectors:
            beside = _step(vectors - v, MOST_VECTORS)
            add_rows(read[y * source.line + v * LANES :], source.line, starts, factors, first, last,
                     together, beside, written, to + y * out.line + v * LANES, out.line)  # fmt: skip
            v += beside
        y += together


@njit(cache=True, nogil=True)
def sort_entries(
    keys: np.ndarray, n: int, entries: Entries, ends: np.ndarray, out: Entries
) -> None:
    """Write ``n`` entries in the order of their keys, equal ones in the order that they have.

    Entries of key k end at ``ends[k]``, and begin where those of the key before end.
    """
    keys, ends = borrowed(keys), borrowed(ends)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    to_starts, to_factors = borrowed(out.starts), borrowed(out.factors)
    ends[:] = 0
    for e in range(n):
        ends[keys[e]] += 1
    total = 0
    for k in range(ends.shape[0]):
        count = ends[k]
        ends[k] = total
        total += count
    for e in range(n):
        to = ends[keys[e]]
        to_starts[to], to_factors[to] = starts[e], factors[e]
        ends[keys[e]] = to + 1


@njit(cache=True, nogil=True)
def add_sorted(
    source: Rows, entries: Entries, ends: np.ndarray, rows: int, length: int, out: Rows,
    places: np.ndarray,
) -> None:  # fmt: skip
    """Add the entries of each key k at ``places[k]``."""
    first = 0
    for k in range(ends.shape[0]):
        if ends[k] > first:
            add_entries(source, entries, first, ends[k], rows, length, out, places[k])
            first = ends[k]
