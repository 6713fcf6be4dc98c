"""Search: which feature, or group of features, enters next.

To add a search, write a class with :meth:`Search.best` in a file of its own and add one line to
:data:`SEARCHES`; to add a criterion, a class with :meth:`Criterion.score` and a line in
:data:`visionshare.search.criteria.CRITERIA`, or, for learners of tasks, in
:data:`visionshare.search.task_criteria.TASK_CRITERIA`.
"""

from __future__ import annotations

from typing import Any

from visionshare.registry import Registry
from visionshare.search.bound_decrease import BoundDecrease, BoundState
from visionshare.search.criteria import CRITERIA, Column, Full, Gradient, LineSearch, make_criterion
from visionshare.search.exhaustive import Exhaustive
from visionshare.search.orthogonal import Orthogonal
from visionshare.search.per_cost import PerCostSearch
from visionshare.search.pool import Candidate, Criterion, Pool, RefitState, Search, SearchState
from visionshare.search.products import PairProducts
from visionshare.search.random_subset import RandomSubset
from visionshare.search.sampled import Sampled, steps_of
from visionshare.search.screened import Screened
from visionshare.search.stumps import StumpScan
from visionshare.search.task_criteria import (
    TASK_CRITERIA,
    LargestDecrease,
    LargestViolation,
    TaskCriterion,
    make_task_criterion,
)
from visionshare.search.violation import Violation

__all__ = [
    "CRITERIA",
    "SEARCHES",
    "TASK_CRITERIA",
    "BoundDecrease",
    "BoundState",
    "Candidate",
    "Column",
    "Criterion",
    "Exhaustive",
    "Full",
    "Gradient",
    "LargestDecrease",
    "LargestViolation",
    "LineSearch",
    "Orthogonal",
    "PairProducts",
    "PerCostSearch",
    "Pool",
    "RandomSubset",
    "RefitState",
    "Sampled",
    "Screened",
    "Search",
    "SearchState",
    "StumpScan",
    "TaskCriterion",
    "Violation",
    "make_criterion",
    "make_search",
    "make_task_criterion",
    "steps_of",
]

SEARCHES: Registry[Search] = Registry(
    "search",
    {
        "exhaustive": Exhaustive,
        "products": PairProducts,
        "random": RandomSubset,
        "sampled": Sampled,
        "screened": Screened,
        "stumps": StumpScan,
    },
    ("best",),
)


def make_search(
    given: str | Search,
    *,
    per: str | None = None,
    **options: Any,
) -> Search:
    """Return the search of a name and its options, or a fresh copy of a search.

    Parameters
    ----------
    given : str or Search
        A key of :data:`SEARCHES`, or a search.
    per : {"macs", "bytes"}, optional
        Divide each score by the multiply-accumulates or the bytes that the candidate adds, see
        :class:`visionshare.search.per_cost.PerCost`.
    **options
        Arguments of the search.

    Raises
    ------
    InputError
        If no search has that name, it takes no such option, or the cost is another.

    Examples
    --------
    >>> make_search("random", n=59).n
    59
    """
    search = SEARCHES.make(given, **options)
    if per is not None:
        return PerCostSearch(search, per)
    return search
