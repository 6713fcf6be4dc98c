"""What kernels of chosen features read besides pixels and weights: tables of whole numbers.

A call of a numba kernel from Python costs time for each argument, and most for a tuple. The tables
therefore travel as one vector, and a kernel unpacks them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Tables(NamedTuple):
    """The work of one evaluation, all int64."""

    strips: np.ndarray
    windows: np.ndarray
    features: np.ndarray

    def packed(self) -> np.ndarray:
        """Return one vector: the numbers of rows, then the tables one after the other."""
        rows = [np.array([len(table) for table in self])]
        return np.concatenate(rows + [table.ravel() for table in self]).astype(np.int64)


class Masks(NamedTuple):
    """Row masks and column masks, each of shape (n_masks, positions), float32."""

    rows: np.ndarray
    cols: np.ndarray
