"""Screened search: a cheap score on a part of the examples, the exact one on the survivors."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError
from visionshare.search.exhaustive import winners
from visionshare.search.per_mac import PerMac
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState

__all__ = ["ScreenedSearch"]

_SPANS = 16


class ScreenedSearch:
    """Screen by the gradient norm on a part of the examples, then verify the best exactly.

    Where the criterion is divided by cost, so are the norms that screen.

    Parameters
    ----------
    fraction : float, default 0.1
        Share of the examples that screens, taken in equal spans all over them.
    keep : int, default 128
        Candidates that are verified with the criterion on all examples.
    """

    def __init__(self, fraction: float = 0.1, keep: int = 128) -> None:
        if not 0 < fraction <= 1:
            raise InputError("fraction", fraction, "a share above 0 and at most 1")
        if isinstance(keep, bool) or keep < 1:
            raise InputError("keep", keep, "a number of candidates of at least 1")
        self.fraction, self.keep = float(fraction), int(keep)

    def _spans(self, m: int, round_number: int) -> list[slice]:
        # Other spans each round: no example is left out for good, and none is drawn twice.
        length = max(1, round(m * self.fraction / _SPANS))
        if length * _SPANS >= m:
            return [slice(0, m)]
        period = m // _SPANS
        shift = (round_number * length) % max(1, period - length + 1)
        return [slice(i * period + shift, i * period + shift + length) for i in range(_SPANS)]

    def screen(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> np.ndarray:
        """Return the numbers of the survivors, ascending."""
        numbers = np.flatnonzero(~excluded)
        if len(numbers) <= self.keep:
            return numbers
        spans = self._spans(len(state.residual), state.round)
        norms = pool.gradient_norms(state.residual, spans=spans)
        if isinstance(criterion, PerMac):
            norms = norms / criterion.costs(pool, state, None)
        best = np.argpartition(-norms[numbers], self.keep - 1)[: self.keep]
        return np.sort(numbers[best])

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best survivors."""
        survivors = self.screen(pool, state, criterion, excluded)
        if len(survivors) == 0:
            return []
        return winners(pool, survivors, criterion.score(pool, state, survivors), n)
