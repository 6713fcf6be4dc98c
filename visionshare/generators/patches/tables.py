"""What kernels of chosen features read besides pixels and weights: tables of whole numbers.

A call of a numba kernel from Python costs time for each argument, and most for a tuple. The tables
therefore travel as one vector, and a kernel unpacks them; see docs/decisions/086.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Masks", "Tables"]


class Tables(NamedTuple):
    """The work of one evaluation, all int64.

    Attributes
    ----------
    strips : ndarray of shape (n_strips, 3)
        Vertical strips of the padded image that templates read: first column, width, and where
        the strip begins in a buffer that holds one after the other, each channel a plane.
    windows : ndarray of shape (n_windows, 7)
        Positions of a template's responses: strip, first row, rows, first column, columns; and
        its rows in ``features``: the first, and the one after the last.
    pairs : ndarray of shape (n_pairs, 2)
        Windows that are computed together, as they are the same rectangle; −1 for none.
    features : ndarray of shape (n_features, 7)
        Row mask and its span, column mask and its span, index in the result.
    """

    strips: np.ndarray
    windows: np.ndarray
    pairs: np.ndarray
    features: np.ndarray

    def packed(self) -> np.ndarray:
        """Return one vector: the numbers of rows, then the tables one after the other.

        Examples
        --------
        >>> empty = [np.empty((0, columns), np.int64) for columns in (3, 7, 2, 7)]
        >>> Tables(*empty)._replace(pairs=np.array([[0, -1]])).packed().tolist()
        [0, 0, 1, 0, 0, -1]
        """
        rows = [np.array([len(table) for table in self])]
        return np.concatenate(rows + [table.ravel() for table in self]).astype(np.int64)


class Masks(NamedTuple):
    """Row masks and column masks, each of shape (n_masks, positions), float32."""

    rows: np.ndarray
    cols: np.ndarray
