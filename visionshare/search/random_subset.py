"""Random-subset search: the exact criterion on a fresh random part of the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from visionshare.generators.checks import check_whole
from visionshare.search.exhaustive import winners
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState
from visionshare.search.subset_kernels import drawn

# Numbers that are drawn at once, for a block of rounds.
_AT_ONCE = 4096


@dataclass
class RandomSubset:
    """Score ``n`` candidates, fresh ones in each round.

    Parameters
    ----------
    n : int, default 59
        Candidates per round. Among 59 is one of the best 5 % with a probability of 95 %.
    random_state : int, default 0
        Seed; a round's draw depends on it and on the round's number alone.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, search=RandomSubset(n=20)).fit(X[:300], y[:300]).support_.size
    2
    """

    n: int = 59
    random_state: int = 0

    def __post_init__(self) -> None:
        check_whole("n", self.n)
        check_whole("random_state", self.random_state, least=0)
        self.n = int(self.n)
        self.random_state = int(self.random_state)

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best of the draw."""
        numbers = drawn(self.uniforms(state.round)[0], np.flatnonzero(excluded), pool.size)
        if len(numbers) == 0:
            return []
        return winners(pool, numbers, criterion.score(pool, state, numbers), n)

    def uniforms(self, number: int) -> np.ndarray:
        """Return what draws in a round and in some that follow, a row each.

        One generator serves a block of rounds: to make one takes as long as to score 59 candidates.
        """
        rows = max(1, _AT_ONCE // self.n)
        return _uniforms(self.random_state, self.n, number // rows)[number % rows :]


@lru_cache(maxsize=4)
def _uniforms(random_state: int, n: int, block: int) -> np.ndarray:
    """Return the numbers in [0, 1) that draw in a block of rounds, a row each."""
    rng = np.random.default_rng([random_state, block])
    return rng.random((max(1, _AT_ONCE // n), n))
