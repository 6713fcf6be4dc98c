"""The criterion of column generation: how far a candidate violates optimality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.penalties import RowPenalty, violations
from visionshare.search.pool import Pool, SearchState


@dataclass(frozen=True)
class Violation:
    """max(‖h‖_{q'} − λ_p, max_j |Σ_t h_jt| − λ_s) with h = Φ_JᵀR, for each candidate J.

    A candidate whose violation is at most 0 cannot lower the objective.

    Attributes
    ----------
    norm : RowPenalty
    alpha, shared_alpha : float
        λ_p and λ_s; infinite ones violate nothing.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, proposition 1 and equation 11.
    """

    norm: RowPenalty
    alpha: float
    shared_alpha: float = np.inf

    def score(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the violations."""
        ids, starts = pool.members(numbers)
        G = pool.columns.correlate(state.residual, ids)
        starts = np.arange(len(G)) if starts is None else np.asarray(starts)
        return violations(G, starts, self.norm, self.alpha, self.shared_alpha)
