"""Sampled search: fresh draws of a continuous family each round, the best of them enters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_fraction, check_whole
from visionshare.search.exhaustive import winners
from visionshare.search.per_cost import PerCost
from visionshare.search.pool import Candidate, Criterion, Pool, Search, SearchState
from visionshare.search.screened import sample_by_residual, weighted_sample
from visionshare.store.drawn_columns import DrawnColumns


@dataclass
class Sampled:
    """Score the round's own draws of :class:`visionshare.store.DrawnColumns`.

    Parameters
    ----------
    steps : int, default 0
        Steps uphill that the best draws take before they enter: along the gradient of what their
        features promise, in their own parameters. Few steps are worth many draws.
    keep : int, optional
        Draws that are scored on all examples; never fewer than enter. The others are left out by
        an estimate of their gradient's norm, on examples drawn by their part of the residual as
        :class:`Screened` draws them. All are scored on all examples when omitted.
    fraction : float, default 0.1
        Fraction of the examples that the estimate reads, fresh ones each round.
    random_state : int, default 0
        Seed of these examples; they depend on it, on the round and on the residual alone.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §4; the steps are ours.
    """

    steps: int = 0
    keep: int | None = None
    fraction: float = 0.1
    random_state: int = 0

    def __post_init__(self) -> None:
        check_whole("steps", self.steps, least=0)
        check_whole("keep", self.keep, optional=True)
        check_fraction("fraction", self.fraction)
        check_whole("random_state", self.random_state, least=0)
        self.steps = int(self.steps)
        self.random_state = int(self.random_state)
        self.keep = None if self.keep is None else int(self.keep)
        self.fraction = float(self.fraction)

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the best of the round's draws; one whose features are chosen already stays."""
        columns = pool.columns
        if not isinstance(columns, DrawnColumns):
            raise InputError("X", type(columns).__name__, "DrawnColumns, for the search 'sampled'")
        numbers = columns.draws.of_round(state.round)
        numbers = self.screen(pool, state, criterion, numbers[~excluded[numbers]], n)
        found = winners(pool, numbers, criterion.score(pool, state, numbers), n)
        if not self.steps or not found:
            return found
        for candidate in found:
            # The draws of a fit that begins with another's end are among those that it chose.
            if not np.isin(candidate.features, state.support).any():
                columns.climb(candidate.number, state.residual, self.steps)
        numbers = np.array([candidate.number for candidate in found])
        return winners(pool, numbers, criterion.score(pool, state, numbers), n)

    def screen(
        self, pool: Pool, state: SearchState, criterion: Criterion, numbers: np.ndarray, n: int = 1
    ) -> np.ndarray:
        """Return the numbers of those draws that are scored on all examples, ascending."""
        keep = len(numbers) if self.keep is None else max(self.keep, n)
        if keep >= len(numbers):
            return numbers
        norms = self.estimate(pool, state, numbers)
        if isinstance(criterion, PerCost):
            norms = norms / criterion.costs(pool, state, numbers)
        best = np.argsort(-norms, kind="stable")[:keep]
        return np.sort(numbers[best])

    def estimate(self, pool: Pool, state: SearchState, numbers: np.ndarray) -> np.ndarray:
        """Return the estimate of ‖XᵀR‖ over the features of each of these draws, (n,)."""
        columns = cast("DrawnColumns", pool.columns)
        R = state.residual
        size = max(1, round(self.fraction * len(R)))
        seed = (self.random_state, state.round)
        rows, inverse = sample_by_residual(R, size, seed)
        weighted = weighted_sample(R, rows, inverse, columns.is_centered)
        return columns.norms_on(rows, inverse, weighted, numbers)


def steps_of(search: Search) -> int:
    """Return how many steps the draws of a search take, also where it goes by cost.

    Examples
    --------
    >>> steps_of(Sampled(steps=3))
    3
    """
    return int(getattr(getattr(search, "search", search), "steps", 0))
