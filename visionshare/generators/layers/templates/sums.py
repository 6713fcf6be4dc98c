"""Sums of patches, or of templates, where maxima are: what gradients through maxima are made of.

A maximum has the derivative of the response where it is, so that of all positions few count. They
are listed, as entries with a place and a factor, and added in registers entry by entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.layers.templates.responses import aligned
from visionshare.generators.layers.templates.steps import gather_rows, scatter_rows
from visionshare.generators.layers.templates.vectors import LANES, MOST_ROWS, MOST_VECTORS

__all__ = [
    "Entries",
    "Rows",
    "add_apart",
    "add_together",
    "empty_entries",
    "filled",
    "rows_of",
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
    """Return how many are summed together: one alone only where nothing else is left."""
    return 2 if left == most + 1 else min(left, most)


@njit(cache=True, nogil=True)
def add_together(
    source: Rows, entries: Entries, n: int, rows: int, length: int, out: Rows, to: int
) -> None:
    """Add ``n`` entries, ``rows`` rows of ``length`` floats each."""
    # To the rows that begin at ``to``. Whole vectors are read and written: a row of ``out`` must
    # have room for them.
    read, written = borrowed(source.values), borrowed(out.values)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    y, vectors = 0, filled(length) // LANES
    while y < rows:
        together, v = _step(rows - y, MOST_ROWS), 0
        while v < vectors:
            beside = _step(vectors - v, MOST_VECTORS)
            place = to + y * out.line + v * LANES
            gather_rows(read[y * source.line + v * LANES :], source.line, starts, factors, 0, n,
                        together, beside, written, place, out.line)  # fmt: skip
            v += beside
        y += together


@njit(cache=True, nogil=True)
def add_apart(
    source: Rows, entries: Entries, first: int, n: int, rows: int, length: int, out: Rows,
    tos: np.ndarray,
) -> None:  # fmt: skip
    """Add ``n`` entries, ``rows`` rows of ``length`` floats each, each to rows of its own."""
    # Those of ``out`` begin at ``tos``. The factors of the entries begin at ``first``.
    read, written = borrowed(source.values), borrowed(out.values)
    starts, factors, tos = borrowed(entries.starts), borrowed(entries.factors), borrowed(tos)
    y, vectors = 0, filled(length) // LANES
    while y < rows:
        together, v = _step(rows - y, MOST_ROWS), 0
        while v < vectors:
            beside = _step(vectors - v, MOST_VECTORS)
            scatter_rows(read[y * source.line + v * LANES :], source.line, starts, factors, first,
                         n, together, beside, written[y * out.line + v * LANES :], tos,
                         out.line)  # fmt: skip
            v += beside
        y += together


@njit(cache=True, nogil=True)
def rows_of(templates: np.ndarray) -> Rows:
    """Return templates (n, q, q · C) in rows of whole vectors, zeros where nothing is."""
    n, q, length = templates.shape
    line = filled(length)
    values = aligned(n * q * line)
    values.reshape((n, q, line))[:, :, :length] = templates
    return Rows(values, line)
