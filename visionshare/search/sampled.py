"""Sampled search: fresh draws of a continuous family each round, the best of them enters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_whole
from visionshare.search.exhaustive import winners
from visionshare.search.pool import Candidate, Criterion, Pool, Search, SearchState
from visionshare.store.drawn_columns import DrawnColumns

__all__ = ["Sampled", "steps_of"]


@dataclass
class Sampled:
    """Score the round's own draws of :class:`visionshare.store.DrawnColumns`.

    Parameters
    ----------
    steps : int, default 0
        Steps uphill that the best draws take before they enter: along the gradient of what their
        features promise, in their own parameters. Few steps are worth many draws.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §4; the steps are ours.
    """

    steps: int = 0

    def __post_init__(self) -> None:
        check_whole("steps", self.steps, least=0)
        self.steps = int(self.steps)

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: object, n: int = 1
    ) -> list[Candidate]:
        """Return the best of the round's draws."""
        columns = pool.columns
        if not isinstance(columns, DrawnColumns):
            raise InputError("X", type(columns).__name__, "DrawnColumns, for the search 'sampled'")
        numbers = columns.draws.of_round(state.round)
        found = winners(pool, numbers, criterion.score(pool, state, numbers), n)
        if not self.steps or not found:
            return found
        for candidate in found:
            columns.climb(candidate.number, state.residual, self.steps)
        numbers = np.array([candidate.number for candidate in found])
        return winners(pool, numbers, criterion.score(pool, state, numbers), n)


def steps_of(search: Search) -> int:
    """Return how many steps the draws of a search take, also where it goes by cost.

    Examples
    --------
    >>> steps_of(Sampled(steps=3))
    3
    """
    return int(getattr(getattr(search, "search", search), "steps", 0))
