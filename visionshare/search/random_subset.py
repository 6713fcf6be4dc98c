"""Random-subset search: the exact criterion on a fresh random part of the candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_whole
from visionshare.search.exhaustive import winners
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState

__all__ = ["RandomSubset", "samples_needed"]


def samples_needed(best: float = 0.05, confidence: float = 0.95) -> int:
    """Return how many draws hold one of the ``best`` fraction with this confidence: the 59 rule.

    Parameters
    ----------
    best : float, default 0.05
        The fraction of the candidates that is good enough, in (0, 1).
    confidence : float, default 0.95
        The wanted probability, in (0, 1).

    Examples
    --------
    >>> samples_needed()
    59
    """
    if not 0 < best < 1:
        raise InputError("best", best, "a fraction between 0 and 1")
    if not 0 < confidence < 1:
        raise InputError("confidence", confidence, "a probability between 0 and 1")
    return math.ceil(math.log(1 - confidence) / math.log(1 - best))


@dataclass
class RandomSubset:
    """Score ``n`` candidates, fresh ones in each round.

    Parameters
    ----------
    n : int, default 59
        Candidates per round; see :func:`samples_needed`.
    random_state : int, default 0
        Seed; a round's draw depends on it and on the round's number alone.
    """

    n: int = 59
    random_state: int = 0

    def __post_init__(self) -> None:
        check_whole("n", self.n)
        check_whole("random_state", self.random_state, least=0)
        self.n, self.random_state = int(self.n), int(self.random_state)

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best of the draw."""
        rng = np.random.default_rng([self.random_state, state.round])
        drawn = _drawn(np.flatnonzero(excluded), pool.size, self.n, rng)
        if len(drawn) == 0:
            return []
        return winners(pool, drawn, criterion.score(pool, state, drawn), n)


def _drawn(excluded: np.ndarray, size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n of the numbers below ``size`` that are not excluded, ascending.

    Draws positions among those that are left: a list of them would cost time for each candidate.
    """
    left = size - len(excluded)
    positions = np.sort(rng.choice(left, min(n, left), replace=False))
    # Before the e-th excluded number stand excluded[e] − e others.
    return positions + np.searchsorted(excluded - np.arange(len(excluded)), positions, side="right")
