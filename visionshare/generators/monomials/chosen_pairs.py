"""Scores of chosen products of pairs in C: bits say which pairs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.generators.monomials.pair_table import PairTable, by_two

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.codegen.whole_numbers import ClassScales

# A byte says how many bytes a row has.
_MOST_FEATURES = 8 * 255


def saves_room(table: PairTable) -> bool:
    """Return whether bits take less than weights of 0 for the pairs that were left out."""
    k, n = table.singles.shape
    if n > _MOST_FEATURES:
        return False
    a_pair = -(-k // 2) * (1 if table.bits == 4 else 2)
    missing = n * (n + 1) // 2 - len(table.pairs)
    return len(pair_masks(table.pairs, n)) < a_pair * missing


def emit_chosen(table: PairTable, scales: ClassScales, writer: Writer) -> Unit:
    """Return the unit of chosen pairs, row after row, in a row two classes at a time."""
    k, n = table.singles.shape
    # Of each row, as of the bits, the square first.
    order = np.lexsort((-table.pairs[:, 1], table.pairs[:, 0]))
    rows = np.split(order, np.cumsum(np.bincount(table.pairs[:, 0], minlength=n))[:-1])
    weights = [by_two(table.weights[:, row], table.bits).ravel() for row in rows]
    tables = {
        "masks": pair_masks(table.pairs, n), "pairs": np.concatenate(weights),
        "linear": by_two(table.singles, 8).swapaxes(0, 1).ravel(),
        "multipliers": scales.multipliers, "offsets": scales.offsets,
    }  # fmt: skip
    even = k + k % 2
    values = {
        "base": table.base.unit.name, "n": n, "k": k, "even": even, "packed": table.bits == 4,
        "shift": scales.shift, "linear_shift": table.shift,
        "pair_type": integer_type(tables["pairs"]), "linear_type": integer_type(tables["linear"]),
    }  # fmt: skip
    work = {
        "sums": WorkArray("int64_t", even),
        "features": WorkArray("uint16_t", n),
        "others": WorkArray("uint16_t", max(1, *map(len, rows))),
    }
    return writer.unit(__file__, "chosen", tables, values, work, (table.base.unit,))


def pair_masks(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return for each row the number of its bytes, then its bytes: bit d is pair (i, i − d)."""
    made = []
    for i in range(n):
        distance = i - pairs[pairs[:, 0] == i, 1]
        bits = np.zeros(distance.max(initial=-1) + 1, np.uint8)
        bits[distance] = 1
        row = np.packbits(bits, bitorder="little")
        made.append(np.concatenate([[len(row)], row]).astype(np.int64))
    return np.concatenate(made)
