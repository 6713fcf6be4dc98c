"""The orthogonal criterion: the gradient's norm for what a candidate adds to the chosen columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from visionshare.generators.checks import check_fraction
from visionshare.search.basis import Basis
from visionshare.search.novelty import Novelty
from visionshare.search.pool import Pool, RefitState
from visionshare.solvers import ActiveSet


@dataclass
class Orthogonal:
    """Σ_{j∈J} ‖∂L/∂W_{·,j}‖₁ / ‖the part of x_j that no chosen column explains‖.

    The gradient of a column that is nearly a combination of chosen ones is small because the
    refit has used them up, and so is what it can still add; divided by the norm of its new part,
    both count. Where that part is under ``floor`` of the column's variance the floor stands in
    for it, or near-copies would win by their rounding errors.

    Parameters
    ----------
    floor : float, default 0.1
        Least fraction of a column's variance that is taken as new.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, criterion=Orthogonal(floor=0.2)).fit(X[:300], y[:300]).support_.size
    2
    """

    floor: float = 0.1
    # What earlier rounds computed.
    _explained: np.ndarray | None = field(default=None, init=False, repr=False, compare=False)
    _n: int = field(default=0, init=False, repr=False, compare=False)
    _basis: Basis = field(default_factory=Basis, init=False, repr=False, compare=False)
    _novelty: Novelty | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fraction("floor", self.floor)
        self.floor = float(self.floor)

    def spread(self, pool: Pool, state: RefitState) -> np.ndarray:
        """Return what divides each column's gradient norm, (d,), estimated for a screen.

        It is estimated on few examples; ones where the columns cannot be sampled.
        """
        columns = pool.columns
        if self._novelty is None:
            omega = state.active.omega.reshape(-1)[: state.active.m]
            self._novelty = Novelty(columns, omega)
        if not self._novelty.known:
            return np.ones(columns.shape[1])
        new = np.maximum(self._novelty.variances(state.support), self.floor * columns.variance)
        return np.sqrt(np.where(new > 0, new, 1.0))

    def score(self, pool: Pool, state: RefitState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the scores of these candidates, or of all for ``None``."""
        ids, starts = pool.members(numbers)
        self._grow_basis(state.active)
        if numbers is None:
            norms, explained = self._scan(pool, state)
        else:
            norms = np.abs(pool.columns.correlate(state.residual, ids)).sum(axis=1)
            explained = self._explained_of(state.active, pool.columns.columns_of(ids))
        variance = pool.columns.variance if ids is None else pool.columns.variance[ids]
        new = np.maximum(variance - explained, self.floor * variance)
        scores = np.where(new > 0, norms / np.sqrt(np.where(new > 0, new, 1.0)), 0.0)
        return pool.sums(scores, starts)

    def _grow_basis(self, active: ActiveSet) -> None:
        for j in range(self._basis.n, active.n + 1):
            self._basis.append(active.inner_products(j))

    def _explained_of(self, active: ActiveSet, X: np.ndarray) -> np.ndarray:
        """Return the variance of each row of X that the active columns explain."""
        C = active.weighted_products(X)
        return self._basis.squares(C) - C[:, 0] ** 2

    def _basis_vector(self, active: ActiveSet, j: int) -> np.ndarray:
        """Return ω times the unit vector of what column j adds to those before it."""
        return active.weighted_combination(self._basis.coefficients(j))

    def _scan(self, pool: Pool, state: RefitState) -> tuple[np.ndarray, np.ndarray]:
        """Return every column's gradient norm and explained variance."""
        # One scan gives both: the newest basis vector travels with the residual, vector j in
        # column j modulo k + 1 of the product. After a resume several vectors share a scan in the
        # same places, so that the bits equal a run's that was never stopped.
        active = state.active
        R = state.residual
        width = active.k + 1
        if self._explained is None:
            self._explained = np.zeros(pool.columns.shape[1])
        while active.n - self._n > 1:
            last = min(self._n + width, active.n - 1)
            vectors = [self._basis_vector(active, j + 1) for j in range(self._n, last)]
            G = pool.columns.correlate(active.each(_side_by_side, self._n, width, *vectors))
            for j in range(self._n, last):
                self._explained += G[:, j % width] ** 2
            self._n = last
        if self._n == active.n:
            return np.abs(pool.columns.correlate(R)).sum(axis=1), self._explained
        column = self._n % width
        vector = self._basis_vector(active, active.n)
        G = pool.columns.correlate(active.each(_with_column, R, column, vector))
        self._explained += G[:, column] ** 2
        self._n = active.n
        return np.abs(np.delete(G, column, axis=1)).sum(axis=1), self._explained


def _side_by_side(active: ActiveSet, first: int, width: int, *vectors: np.ndarray) -> np.ndarray:
    """Return vectors as columns of an array (m, width): number j stands in column j modulo it."""
    product = np.zeros((active.m, width), active.dtype)
    for j, vector in enumerate(vectors, start=first):
        product[:, j % width] = vector
    return product


def _with_column(active: ActiveSet, R: np.ndarray, column: int, vector: np.ndarray) -> np.ndarray:
    """Return R with a vector more before a column."""
    return np.insert(R, column, vector, axis=1)
