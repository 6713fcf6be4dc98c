"""The criterion of boosting: by how much a candidate's update lowers the bound on the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.search.pool import Pool, SearchState
from visionshare.solvers import MovingRows, RowBound

__all__ = ["BoundDecrease", "BoundState"]

_AT_ONCE = 256


@dataclass(frozen=True)
class BoundState(SearchState):
    """Where a learner of tasks stands that scores candidates by a bound.

    Attributes
    ----------
    importance : ndarray of shape (m, T)
        Weighted importance of the examples; zeros where the bound needs none.
    omegas : ndarray of shape (n_weights, m)
        Weights of the examples in each block, or in each task; 0 for those of others.
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
        self.bound, self.tol = bound, tol

    def score(self, pool: Pool, state: BoundState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the decreases."""
        ids, starts = pool.members(numbers)
        G = pool.columns.correlate(state.residual, ids)
        starts = np.arange(len(G)) if starts is None else np.asarray(starts)
        ends = np.append(starts, len(G))
        named = np.arange(pool.size) if numbers is None else np.asarray(numbers)
        penalty, alpha = self.bound.penalty, self.bound.alpha
        least = penalty.least(alpha) + self.tol * alpha
        tried = penalty.dual_norms(G, starts) > least
        tried |= np.isin(named, list(state.active))
        scores = np.full(len(named), -np.inf)
        positions = np.flatnonzero(tried)
        for i in range(0, len(positions), _AT_ONCE):
            part = positions[i : i + _AT_ONCE]
            rows = [np.arange(ends[p], ends[p + 1]) for p in part]
            scores[part] = self._decreases(pool, state, named[part], [G[r] for r in rows])
        return scores

    def _decreases(
        self, pool: Pool, state: BoundState, numbers: np.ndarray, gradients: list[np.ndarray]
    ) -> np.ndarray:
        columns, bound = pool.columns, self.bound
        X = columns.columns_of(np.concatenate([pool.features(c) for c in numbers]))
        X = columns.each(_precise, X)
        G = np.concatenate(gradients)
        starts = np.cumsum([0, *(len(g) for g in gradients)])[:-1]
        w = np.concatenate(
            [
                state.active.get(int(c), np.zeros_like(g))
                for c, g in zip(numbers, gradients, strict=True)
            ]
        )
        total = np.zeros_like(G)
        if bound.weighs:
            total = columns.total(_weighed, X, state.importance)
        size = bound.sized(columns.total(bound.measure, X, state.omegas, how=bound.how), starts)
        return bound.decrease(MovingRows(w, G, total, size, starts))


def _precise(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float64)


def _weighed(X: np.ndarray, importance: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(X) @ importance)
