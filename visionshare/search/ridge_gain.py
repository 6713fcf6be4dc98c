"""The criterion of GreedyTL: how much a column lowers the error of ridge regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.search.pool import Pool, SearchState


@dataclass(frozen=True)
class RidgeState(SearchState):
    """Where a ridge regression on chosen columns stands, G = (λI + Σ_S zzᵀ)⁻¹ = I/λ − UUᵀ."""

    U: np.ndarray
    root: np.ndarray
    square: float
    alpha: float


class RidgeGain:
    """(zᵀGy)² / (1 + zᵀGz), what a column takes from yᵀGy."""

    def __init__(self) -> None:
        self._explained: np.ndarray | None = None
        self._n = 0

    def score(self, pool: Pool, state: RidgeState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the gains."""
        ids, starts = pool.members(numbers)
        columns = pool.columns
        if numbers is None:
            p, explained = self._scan(pool, state, ids)
        else:
            rooted = columns.each(_with_rooted, state.residual, state.U, state.root, 0)
            products = columns.correlate(rooted, ids)
            p = products[:, 0]
            explained = np.sum(products[:, 1:] ** 2, axis=1)
        scale = columns.scaling_of(ids)[1]
        # A constant column is zero when scaled, and gains nothing.
        square = np.where(scale > 0, state.square, 0.0)
        gains = p * p / (1 + np.maximum(square / state.alpha - explained, 0))
        return pool.sums(gains, starts)

    def _scan(
        self, pool: Pool, state: RidgeState, ids: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return zᵀGy and ‖Uᵀz‖² of every column, in the order of ``ids``."""
        n = len(state.support)
        if self._explained is None or self._n > n:
            self._explained = np.zeros(pool.columns.shape[1])
            self._n = 0
        columns = pool.columns
        rooted = columns.each(_with_rooted, state.residual, state.U, state.root, self._n)
        products = columns.correlate(rooted, ids)
        self._explained = self._explained + np.sum(products[:, 1:] ** 2, axis=1)
        self._n = n
        return products[:, 0], self._explained


def _with_rooted(residual: np.ndarray, U: np.ndarray, root: np.ndarray, first: int) -> np.ndarray:
    return np.column_stack([residual, U[:, first:] * root[:, None]])
