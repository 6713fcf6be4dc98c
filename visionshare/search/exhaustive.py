"""Exhaustive search: the exact criterion on every candidate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.search.pool import Candidate, Criterion, Pool, SearchState


def winners(pool: Pool, numbers: np.ndarray, scores: np.ndarray, n: int) -> list[Candidate]:
    """Return the n best scored candidates, the best first; the lower number among equals."""
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    # The best alone needs no sorting.
    alone = n == 1 and len(scores) > 0
    order = [np.argmax(scores)] if alone else np.argsort(-scores, kind="stable")[:n]
    return [Candidate(int(numbers[i]), pool.features(numbers[i]), float(scores[i])) for i in order]


@dataclass
class Exhaustive:
    """Score all candidates.

    Examples
    --------
    >>> from visionshare.search import make_search
    >>> make_search("exhaustive")
    Exhaustive()
    """

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best candidates."""
        numbers = np.flatnonzero(~excluded)
        if len(numbers) == 0:
            return []
        if len(numbers) > pool.size // 2:
            # Nearly all are wanted: one plain scan beats gathering them.
            return winners(pool, numbers, criterion.score(pool, state, None)[numbers], n)
        return winners(pool, numbers, criterion.score(pool, state, numbers), n)
