"""Search: which feature, or group of features, enters next.

To add a search, write a class with :meth:`Search.best` in a file of its own and add one line to
:data:`SEARCHES`; to add a criterion, a class with :meth:`Criterion.score` and a line in
:data:`visionshare.search.criteria.CRITERIA`, or, for learners of tasks, in
:data:`visionshare.search.task_criteria.TASK_CRITERIA`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from visionshare.errors import InputError
from visionshare.search.bound_decrease import BoundDecrease, BoundState
from visionshare.search.criteria import CRITERIA, make_criterion
from visionshare.search.exhaustive import ExhaustiveSearch
from visionshare.search.per_mac import PerMacSearch
from visionshare.search.pool import Candidate, Criterion, Pool, RefitState, Search, SearchState
from visionshare.search.products import ProductSearch
from visionshare.search.random_subset import RandomSubsetSearch, samples_needed
from visionshare.search.sampled import SampledSearch
from visionshare.search.screened import ScreenedSearch
from visionshare.search.stumps import StumpSearch
from visionshare.search.task_criteria import TASK_CRITERIA, make_task_criterion
from visionshare.search.violation import Violation

__all__ = [
    "CRITERIA",
    "SEARCHES",
    "TASK_CRITERIA",
    "BoundDecrease",
    "BoundState",
    "Candidate",
    "Criterion",
    "ExhaustiveSearch",
    "PerMacSearch",
    "Pool",
    "ProductSearch",
    "RandomSubsetSearch",
    "RefitState",
    "SampledSearch",
    "ScreenedSearch",
    "Search",
    "SearchState",
    "StumpSearch",
    "Violation",
    "make_criterion",
    "make_search",
    "make_task_criterion",
    "samples_needed",
]

SEARCHES: dict[str, Callable[..., Search]] = {
    "exhaustive": ExhaustiveSearch,
    "products": ProductSearch,
    "random": RandomSubsetSearch,
    "sampled": SampledSearch,
    "screened": ScreenedSearch,
    "stumps": StumpSearch,
}


def make_search(name: str, *, per_mac: bool = False, **parameters: Any) -> Search:
    """Return the search registered as ``name``.

    Parameters
    ----------
    name : str
        A key of :data:`SEARCHES`.
    per_mac : bool, default False
        Divide each score by the multiply-accumulates that the candidate adds, see
        :class:`visionshare.search.per_mac.PerMac`.
    **parameters
        Arguments of the search.

    Raises
    ------
    InputError
        If no search has that name.
    """
    if name not in SEARCHES:
        raise InputError("search", name, " or ".join(map(repr, SEARCHES)))
    if not isinstance(per_mac, bool):
        raise InputError("per_mac", per_mac, "true or false")
    search = SEARCHES[name](**parameters)
    return PerMacSearch(search) if per_mac else search
