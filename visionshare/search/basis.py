"""The chosen columns made orthogonal, one after the other, from their inner products alone."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

# Below this fraction of a column's square nothing of it is new.
_DEPENDENT = 1e-6


class Basis:
    """A Cholesky factor of the columns' Gram matrix, which grows by a row a column."""

    def __init__(self) -> None:
        self.n = 0
        self._kept: list[int] = []
        self._factor = np.zeros((16, 16))

    def append(self, products: np.ndarray) -> None:
        """Take in a column."""
        rank = len(self._kept)
        square = float(products[self.n])
        row = self._solved(products[self._kept])
        left = square - float(row @ row)
        if left > _DEPENDENT * square:
            if rank == len(self._factor):
                grown = np.zeros((2 * rank, 2 * rank))
                grown[:rank, :rank] = self._factor
                self._factor = grown
            self._factor[rank, :rank] = row
            self._factor[rank, rank] = np.sqrt(left)
            self._kept.append(self.n)
        self.n += 1

    def _solved(self, right: np.ndarray) -> np.ndarray:
        """Return L⁻¹ of a vector, or of the columns of an array."""
        rank = len(right)
        if not rank:
            return right
        L = self._factor[:rank, :rank]
        return np.asarray(solve_triangular(L, right, lower=True, check_finite=False))

    def coefficients(self, j: int) -> np.ndarray:
        """Return what makes the unit vector of what column j adds to those before it."""
        # (j + 1,). Zeros where it adds nothing.
        combination = np.zeros(j + 1)
        if j not in self._kept:
            return combination
        position = self._kept.index(j)
        unit = np.zeros(position + 1)
        unit[position] = 1.0
        L = self._factor[: position + 1, : position + 1]
        combination[self._kept[: position + 1]] = solve_triangular(
            L, unit, lower=True, trans="T", check_finite=False
        )
        return combination

    def squares(self, products: np.ndarray) -> np.ndarray:
        """Return how much of the square of each of other columns lies in the span."""
        # (n_others,).
        coordinates = self._solved(products[:, self._kept].T)
        return np.asarray(np.einsum("ij,ij->j", coordinates, coordinates))
