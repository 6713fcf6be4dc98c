"""The criterion of boosting: by how much a candidate's update lowers the bound on the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.search.pool import Pool, SearchState
from visionshare.solvers import MovingRows, RowBound

_AT_ONCE = 256


@dataclass(frozen=True)
class BoundState(SearchState):
    """Where a learner of tasks stands that scores candidates by a bound.

    Attributes
    ----------
    importance : ndarray of shape (m, T)
        Weighted importance of the examples; zeros where the bound needs none.
    omegas : ndarray of shape (n_weights, m)
        Weights of the examples in each block, or in each task; 0 for examples of others.
    active : dict of int to ndarray of shape (g, T)
        Weights of the active candidates.
    """

    importance: np.ndarray
    omegas: np.ndarray
    active: dict[int, np.ndarray]


class BoundDecrease:
    """The decrease of bound and penalty by the best update of each candidate's weights.

    Only candidates that violate optimality are tried: those whose gradient exceeds λ in the dual
    norm, and those that are active. All others score −inf.

    Parameters
    ----------
    bound : RowBound
    tol : float, default 0.0
        A candidate may enter only if its gradient exceeds λ by more than this fraction of λ.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §1 and §6.
    """

    def __init__(self, bound: RowBound, tol: float = 0.0) -> None:
        self.bound = bound
        self.tol = tol

    def score(self, pool: Pool, state: BoundState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the decreases."""
        ids, starts = pool.members(numbers)
        G = pool.columns.correlate(state.residual, ids)
        ids = np.arange(len(G)) if ids is None else np.asarray(ids)
        starts = np.arange(len(G)) if starts is None else np.asarray(starts)
        sizes = np.diff(starts, append=len(G))
        named = np.arange(pool.size) if numbers is None else np.asarray(numbers)
        penalty = self.bound.penalty
        alpha = self.bound.alpha
        least = penalty.least(alpha) + self.tol * alpha
        active = np.isin(named, list(state.active))
        w = np.zeros_like(G)
        for p in np.flatnonzero(active):
            w[starts[p] : starts[p] + sizes[p]] = state.active[int(named[p])]
        tried = np.flatnonzero(active | (penalty.dual_norms(G, starts) > least))
        scores = np.full(len(named), -np.inf)
        for i in range(0, len(tried), _AT_ONCE):
            part = tried[i : i + _AT_ONCE]
            # Where each candidate's rows begin, among the rows of this part alone.
            begins = np.cumsum(sizes[part]) - sizes[part]
            rows = np.repeat(starts[part] - begins, sizes[part]) + np.arange(sizes[part].sum())
            scores[part] = self._decreases(pool, state, ids[rows], w[rows], G[rows], begins)
        return scores

    def _decreases(
        self,
        pool: Pool,
        state: BoundState,
        ids: np.ndarray,
        w: np.ndarray,
        G: np.ndarray,
        starts: np.ndarray,
    ) -> np.ndarray:
        """Return the decreases by candidates' columns, of their weights and gradients."""
        columns = pool.columns
        bound = self.bound
        X = columns.each(_precise, columns.columns_of(ids))
        total = np.zeros_like(G)
        if bound.weighs:
            total = columns.total(_weighed, X, state.importance)
        size = bound.sized(columns.total(bound.measure, X, state.omegas, how=bound.how), starts)
        return bound.decrease(MovingRows(w, G, total, size, starts))


def _precise(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float64)


def _weighed(X: np.ndarray, importance: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(X) @ importance)
