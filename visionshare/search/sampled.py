"""Sampled search: fresh draws of a continuous family each round, the best of them enters."""

from __future__ import annotations

from dataclasses import dataclass

from visionshare.errors import InputError
from visionshare.search.exhaustive import winners
from visionshare.search.pool import Candidate, Criterion, Pool, SearchState
from visionshare.store.drawn_columns import DrawnColumns

__all__ = ["Sampled"]


@dataclass
class Sampled:
    """Score the round's own draws of :class:`visionshare.store.DrawnColumns`.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §4.
    """

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: object, n: int = 1
    ) -> list[Candidate]:
        """Return the best of the round's draws."""
        columns = pool.columns
        if not isinstance(columns, DrawnColumns):
            raise InputError("X", type(columns).__name__, "DrawnColumns, for the search 'sampled'")
        numbers = columns.draws.of_round(state.round)
        return winners(pool, numbers, criterion.score(pool, state, numbers), n)
