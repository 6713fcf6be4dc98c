"""Scores by cost: what a candidate promises for each unit of what it adds to the cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.checks import check_choice
from visionshare.search.pool import Candidate, Criterion, Pool, Search, SearchState

COSTS = ("macs", "bytes")
# Bytes of a weight, as classifiers hold them.
_WEIGHT = 4


class PerCost:
    """A criterion's score divided by what the candidate adds to the cost of a classifier."""

    def __init__(self, criterion: Criterion, per: str = "macs") -> None:
        self.criterion = criterion
        self.per = per

    def score(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the scores for each unit of the cost."""
        costs = self.costs(pool, state, numbers)
        return self.criterion.score(pool, state, numbers) / costs

    def costs(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return what these candidates add, or all for ``None``: (n,), at least a little."""
        check_known(pool.columns, self.per)
        added: Any
        ids, starts = pool.members(numbers)
        k = state.residual.shape[1]
        columns = pool.columns
        n = columns.shape[1] if ids is None else len(ids)
        weights = k * (1 if starts is None else np.diff(np.append(starts, n)))
        if self.per == "bytes":
            added = columns.added_bytes(state.support, ids, starts) + _WEIGHT * weights
        else:
            added = columns.added_macs(state.support, ids, starts) + weights
        # Whatever is shared, a candidate costs no less than one.
        return np.maximum(added, 1.0)


def check_known(columns: Columns, per: str) -> None:
    """Raise an InputError where the cost of columns is unknown."""
    if columns.costs is None:
        accepted = f"columns of a family: these {type(columns).__name__} have none"
        raise InputError("per", per, accepted)


@dataclass
class PerCostSearch:
    """A search whose criterion is divided by cost.

    Parameters
    ----------
    search : Search
    per : {"macs", "bytes"}, default "macs"

    Raises
    ------
    InputError
        If the cost is another one.

    Examples
    --------
    >>> from visionshare.search import make_search
    >>> make_search("exhaustive", per="bytes")
    PerCostSearch(search=Exhaustive(), per='bytes')
    """

    search: Search
    per: str = "macs"

    def __post_init__(self) -> None:
        check_choice("per", self.per, COSTS)

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the candidates with the best scores for each unit of the cost."""
        divided = PerCost(criterion, self.per)
        return self.search.best(pool, state, divided, excluded, n)
