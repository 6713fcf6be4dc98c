"""The columns chosen so far, kept in tiles of examples that fit a processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from copy import copy
from functools import cache
from typing import Any, TypeVar

import numpy as np

from visionshare.losses import Loss

TILE = 2048
# Products of pairs at a time: what the second cache holds.
_PRODUCTS = 1 << 16
T = TypeVar("T")
_pairs = cache(np.triu_indices)


class ActiveSet:
    """Scaled columns of the active set, a constant column first, and the products a solver needs.

    Every product runs over tiles of :data:`TILE` examples and adds the tiles' results in
    order, in float64: the bits do not depend on the number of threads.
    """

    def __init__(
        self,
        y: np.ndarray,
        omega: np.ndarray,
        n_classes: int,
        capacity: int = 16,
        dtype: np.dtype | type = np.float32,
        executor: Executor | None = None,
        intercept: bool = True,
    ) -> None:
        self.m = len(y)
        self.k = n_classes
        self.n = 0
        self.dtype = np.dtype(dtype)
        self.tile = min(TILE, max(self.m, 1))
        self.n_tiles = -(-self.m // self.tile)
        self.y = self._tiled(y.astype(np.int64))
        self.omega = self._tiled(omega.astype(np.float64))
        self.columns = np.zeros((self.n_tiles, capacity + 1, self.tile), self.dtype)
        self.columns[:, 0] = 1 if intercept else 0
        self.executor = executor

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        """Return the sum of what a function gives for all examples: of this active set, itself.

        An active set whose examples lie in several places calls it in each of them, with what
        stands there for these arguments. That is how whatever needs the examples themselves is
        written, so that they need not come together.
        """
        return function(self, *args)

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function gives for each example: of this active set, itself."""
        return function(self, *args)

    def of_examples(self, values: np.ndarray) -> np.ndarray:
        """Return an array with a row for each example as :meth:`total` and :meth:`each` take it."""
        return values

    def _tiled(self, values: np.ndarray) -> np.ndarray:
        padded = np.zeros((self.n_tiles * self.tile,), values.dtype)
        padded[: self.m] = values
        return padded.reshape(self.n_tiles, self.tile)

    def _map(self, function: Callable[[int], T]) -> list[T]:
        if self.executor is None or self.n_tiles == 1:
            return [function(i) for i in range(self.n_tiles)]
        return list(self.executor.map(function, range(self.n_tiles)))

    def append(self, new: np.ndarray) -> None:
        """Add scaled columns, given as rows of an array (n_new, m)."""
        n_new = len(new)
        needed = self.n + n_new + 1
        if needed > self.columns.shape[1]:
            room = max(needed, 2 * self.columns.shape[1])
            grown = np.zeros((self.n_tiles, room, self.tile), self.dtype)
            grown[:, : self.n + 1] = self.columns[:, : self.n + 1]
            self.columns = grown
        for row, column in enumerate(new, start=self.n + 1):
            self.columns[:, row] = self._tiled(np.asarray(column, self.dtype))
        self.n += n_new

    @property
    def labels(self) -> np.ndarray:
        """The examples' classes, (m,)."""
        return self.y.reshape(-1)[: self.m]

    @property
    def weights(self) -> np.ndarray:
        """The examples' weights, (m,)."""
        return self.omega.reshape(-1)[: self.m]

    def reweighted(self, omega: np.ndarray) -> ActiveSet:
        """Return an active set of the same columns, without a copy, and other weights (m,)."""
        other = copy(self)
        other.omega = self._tiled(omega.astype(np.float64))
        return other

    def beside(self, new: np.ndarray) -> ActiveSet:
        """Return an active set of these columns alone, on the same examples, no intercept."""
        y = self.labels
        omega = self.weights
        alone = ActiveSet(y, omega, self.k, len(new), self.dtype, self.executor, intercept=False)
        alone.append(new)
        return alone

    def keep(self, positions: np.ndarray) -> None:
        """Keep only the columns at these positions, in this order (0 is the first chosen)."""
        rows = np.concatenate(([0], np.asarray(positions, np.int64) + 1))
        self.columns[:, : len(rows)] = self.columns[:, rows]
        self.n = len(positions)

    def scores(self, W: np.ndarray) -> np.ndarray:
        """Return Z (tiles, k, tile) for W (k, n + 1), intercept first.

        A narrower W scores the first columns alone.
        """
        weights = np.ascontiguousarray(W, self.dtype)
        Z = np.empty((self.n_tiles, self.k, self.tile), self.dtype)

        def one(i: int) -> None:
            np.matmul(weights, self.columns[i, : weights.shape[1]], out=Z[i])

        self._map(one)
        return Z

    def value(self, loss: Loss, Z: np.ndarray) -> float:
        """Return the weighted loss at scores Z."""
        return float(sum(self._map(lambda i: loss.value(Z[i], self.y[i], self.omega[i]))))

    def gradient(self, loss: Loss, Z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the weighted loss and its gradient (k, n + 1), float64, at scores Z."""

        def one(i: int) -> tuple[float, np.ndarray]:
            value, R = loss.residual(Z[i], self.y[i], self.omega[i])
            return value, np.matmul(self.columns[i, : self.n + 1], R.T)

        value = 0.0
        gradient = np.zeros((self.n + 1, self.k))
        for part, tile in self._map(one):
            value += part
            gradient += tile
        return value, gradient.T

    def value_and_gradient(
        self, loss: Loss, Z: np.ndarray, following: np.ndarray
    ) -> tuple[float, Callable[[], tuple[float, np.ndarray]]]:
        """Return the loss at scores Z, and what gives value and gradient at those that follow."""
        return self.value(loss, Z), lambda: self.gradient(loss, following)

    def residual(self, loss: Loss, Z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the weighted loss and R (m, k), the residual a search works with."""
        R = np.empty((self.n_tiles, self.tile, self.k), self.dtype)

        def one(i: int) -> float:
            value, tile = loss.residual(Z[i], self.y[i], self.omega[i])
            R[i] = tile.T
            return value

        value = float(sum(self._map(one)))
        return value, R.reshape(-1, self.k)[: self.m]

    def flat(self, Z: np.ndarray) -> np.ndarray:
        """Return tiled scores as (m, k)."""
        return np.ascontiguousarray(Z.transpose(0, 2, 1).reshape(-1, self.k)[: self.m])

    def inner_products(self, j: int) -> np.ndarray:
        """Return Σ_i ω_i x_ij x_ir for r = 0 … j, float64; 0 is the constant column."""

        def one(i: int) -> np.ndarray:
            column = (self.columns[i, j] * self.omega[i]).astype(self.dtype)
            return np.matmul(self.columns[i, : j + 1], column)

        return np.asarray(np.sum(self._map(one), axis=0, dtype=np.float64))

    def weighted_products(self, new: np.ndarray) -> np.ndarray:
        """Return Σ_i ω_i v_i x_ir of each row v of an array (n_new, m), (n_new, n + 1) float64."""

        def one(i: int) -> np.ndarray:
            rows = new[:, i * self.tile : (i + 1) * self.tile]
            omega = self.omega[i, : rows.shape[1]].astype(self.dtype)
            X = self.columns[i, : self.n + 1, : rows.shape[1]]
            return np.matmul(rows.astype(self.dtype, copy=False) * omega, X.T)

        return np.asarray(np.sum(self._map(one), axis=0, dtype=np.float64))

    def weighted_combination(self, weights: np.ndarray) -> np.ndarray:
        """Return ω_i Σ_r weights_r x_ir, one number an example, over the first columns."""
        weights = weights.astype(self.dtype)
        out = np.empty((self.n_tiles, self.tile), self.dtype)

        def one(i: int) -> None:
            out[i] = np.matmul(weights, self.columns[i, : len(weights)]) * self.omega[i]

        self._map(one)
        return out.reshape(-1)[: self.m]

    def curvature_grams(self, loss: Loss, Z: np.ndarray, stride: int) -> np.ndarray:
        """Return Σ_i ω_i ρ_qi (1 − ρ_qi) x_i x_iᵀ by class, of every ``stride``-th example."""

        def one(i: int) -> np.ndarray:
            X = np.ascontiguousarray(self.columns[i, : self.n + 1, ::stride])
            P = loss.curvature(np.ascontiguousarray(Z[i][:, ::stride]), self.y[i, ::stride])
            H = (P * (1 - P) * (stride * self.omega[i, ::stride])).astype(self.dtype)
            return np.stack([np.matmul(X * h, X.T) for h in H])

        grams = np.zeros((self.k, self.n + 1, self.n + 1))
        for tile in self._map(one):
            grams += tile
        return grams

    def curvature_blocks(
        self, loss: Loss, Z: np.ndarray, stride: int, width: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonals of :meth:`curvature_grams`, and blocks of the classes' mean."""
        p = self.n + 1
        n_blocks = -(-p // width)

        def one(i: int) -> tuple[np.ndarray, np.ndarray]:
            part = self.columns[i, :p, ::stride]
            X = np.zeros((n_blocks * width, part.shape[1]), self.dtype)
            X[:p] = part
            P = loss.curvature(np.ascontiguousarray(Z[i][:, ::stride]), self.y[i, ::stride])
            H = (P * (1 - P) * (stride * self.omega[i, ::stride])).astype(self.dtype)
            diagonals = np.matmul(H, np.square(X[:p]).T)
            root = (X * np.sqrt(H.mean(axis=0))).reshape(n_blocks, width, -1)
            return diagonals, np.matmul(root, root.transpose(0, 2, 1))

        diagonals = np.zeros((self.k, p))
        blocks = np.zeros((n_blocks, width, width))
        for diagonal, block in self._map(one):
            diagonals += diagonal
            blocks += block
        return diagonals, blocks

    def hessian(self, loss: Loss, Z: np.ndarray) -> np.ndarray:
        """Return the loss's whole Hessian (k(n+1), k(n+1)), float64; for small problems."""
        p = self.n + 1
        first, second = _pairs(p)
        q, r = _pairs(self.k)
        products = np.zeros((len(q), len(first)))
        same = (q == r)[:, None]
        width = max(64, _PRODUCTS // max(len(first), len(q)))
        for i in range(self.n_tiles):
            P = loss.curvature(Z[i], self.y[i]).astype(np.float64)
            weighted = P * self.omega[i]
            for start in range(0, P.shape[1], width):
                part = slice(start, start + width)
                X = self.columns[i, :p, part].astype(np.float64)
                # All pairs of classes with all pairs of columns are one product of matrices.
                h = weighted[q, part] * (same - P[r, part])
                products += h @ (X[first] * X[second]).T
        H = np.zeros((self.k, p, self.k, p))
        H[q[:, None], first, r[:, None], second] = products
        H[q[:, None], second, r[:, None], first] = products
        H[r[:, None], first, q[:, None], second] = products
        H[r[:, None], second, q[:, None], first] = products
        return H.reshape(self.k * p, self.k * p)
