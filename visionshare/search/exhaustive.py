"""Exhaustive search: the exact criterion on every candidate."""

from __future__ import annotations

import numpy as np

from visionshare.search.pool import Candidate, Criterion, Pool, SearchState

__all__ = ["ExhaustiveSearch", "winner"]


def winner(pool: Pool, numbers: np.ndarray, scores: np.ndarray) -> Candidate | None:
    """Return the best scored candidate; the lowest number among equals; None when there is none."""
    if len(numbers) == 0:
        return None
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    place = int(np.argmax(scores))
    number = int(numbers[place])
    return Candidate(number, pool.features(number), float(scores[place]))


class ExhaustiveSearch:
    """Score all candidates.

    Examples
    --------
    >>> from visionshare.search import make_search
    >>> make_search("exhaustive")
    ExhaustiveSearch()
    """

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray
    ) -> Candidate | None:
        """Return the best candidate."""
        numbers = np.flatnonzero(~excluded)
        if len(numbers) == 0:
            return None
        if len(numbers) > pool.size // 2:
            # Nearly all are wanted: one plain scan beats gathering them.
            return winner(pool, numbers, criterion.score(pool, state, None)[numbers])
        return winner(pool, numbers, criterion.score(pool, state, numbers))

    def __repr__(self) -> str:
        return "ExhaustiveSearch()"
