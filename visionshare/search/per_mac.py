"""Scores by cost: what a candidate promises for each multiply-accumulate that it adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError
from visionshare.search.pool import Candidate, Criterion, Pool, Search, SearchState

__all__ = ["PerMac", "PerMacSearch"]


class PerMac:
    """A criterion's score divided by the multiply-accumulates that the candidate adds.

    These are macs(chosen and J) − macs(chosen) of the features, which may share work with the
    chosen ones, and the k · |J| weights; at least 1.

    Parameters
    ----------
    criterion : Criterion
        Scores at full price.
    """

    def __init__(self, criterion: Criterion) -> None:
        self.criterion = criterion

    def score(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the scores for each multiply-accumulate.

        Raises
        ------
        InputError
            If the columns are of no family, and their cost so unknown.
        """
        costs = self.costs(pool, state, numbers)
        return self.criterion.score(pool, state, numbers) / costs

    def costs(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return what these candidates add, or all for ``None``: (n,) int64, at least 1.

        Raises
        ------
        InputError
            If the columns are of no family.
        """
        ids, starts = pool.members(numbers)
        added = pool.columns.added_macs(state.support, ids, starts)
        if added is None:
            given = f"{type(pool.columns).__name__} without a family"
            raise InputError("per_mac", given, "per_mac needs columns of a family")
        columns = pool.columns.shape[1] if ids is None else len(ids)
        sizes = 1 if starts is None else np.diff(np.append(starts, columns))
        return np.maximum(added + state.residual.shape[1] * sizes, 1)


@dataclass
class PerMacSearch:
    """A search whose criterion is divided by cost.

    Parameters
    ----------
    search : Search

    Examples
    --------
    >>> from visionshare.search import make_search
    >>> make_search("exhaustive", per_mac=True)
    PerMacSearch(search=Exhaustive())
    """

    search: Search

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the candidates with the best scores for each multiply-accumulate."""
        return self.search.best(pool, state, PerMac(criterion), excluded, n)
