"""The candidates of a search: single columns, or groups of columns that enter together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from visionshare.columns import Columns
from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.solvers import ActiveSet


@dataclass(frozen=True)
class SearchState:
    """What every search and criterion may ask a learner for.

    Attributes
    ----------
    residual : ndarray of shape (m, k)
        R, the weighted derivative of the loss in the scores: the gradient of column r is x_rᵀR.
    round : int
        The round that is about to begin, from 1.
    support : ndarray of int64
        Ids of the chosen features.
    earlier : callable, optional
        Returns the residual at an earlier round, to the bit, whether or not the run was stopped
        in between; None where the learner cannot say.
    """

    residual: np.ndarray
    round: int
    support: np.ndarray
    earlier: Callable[[int], np.ndarray] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class RefitState(SearchState):
    """Where a learner that refits all classes together stands.

    Attributes
    ----------
    value : float
        Loss plus penalty.
    loss_value : float
        Loss alone.
    active : ActiveSet
    W : ndarray of shape (k, n + 1)
        Weights, intercept first.
    Z : ndarray
        Tiled scores.
    loss : Loss
    penalty : Penalty
    """

    value: float
    loss_value: float
    active: ActiveSet
    W: np.ndarray
    Z: np.ndarray
    loss: Loss
    penalty: Penalty


@dataclass(frozen=True)
class Candidate:
    """What a search found: the candidate's number, its columns' ids and its score.

    Examples
    --------
    >>> Candidate(number=3, features=np.array([6, 7]), score=0.5).features.tolist()
    [6, 7]
    """

    number: int
    features: np.ndarray
    score: float


class Pool:
    """The candidates of a matrix of columns.

    Parameters
    ----------
    columns : Columns
        ``columns.groups`` says which columns enter together; ``None``: each enters alone.

    Attributes
    ----------
    size : int
        Number of candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare.columns import ArrayColumns
    >>> pool = Pool(ArrayColumns(np.eye(3), groups=np.array([1, 0, 1])))
    >>> pool.size, [pool.features(c).tolist() for c in range(pool.size)]
    (2, [[1], [0, 2]])
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        d = columns.shape[1]
        if columns.groups is None:
            self.order: np.ndarray | None = None
            self.starts: np.ndarray = np.empty(0, np.int64)
            self.size = d
        else:
            groups = np.asarray(columns.groups)
            self.order = np.argsort(groups, kind="stable")
            _, first = np.unique(groups[self.order], return_index=True)
            self.starts = np.append(first, d)
            self.size = len(first)

    def features(self, number: int | np.integer[Any]) -> np.ndarray:
        """Return the column ids of one candidate."""
        if self.order is None:
            return np.array([number], np.int64)
        return self.order[int(self.starts[number]) : int(self.starts[number + 1])]

    def flat(self) -> np.ndarray:
        """Return which candidates have constant columns only, (size,) bool."""
        flat = self.columns.flat()
        if self.order is None:
            return flat
        return np.logical_and.reduceat(flat[self.order], self.starts[:-1])

    def gradient_norms(self, R: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
        """Return Σ_{j∈J} ‖x_jᵀR‖₁ of each candidate J (ShareBoost, algorithm 1 and §3.2).

        Parameters
        ----------
        R : ndarray of shape (m, k)
        numbers : ndarray of int, optional
            Which candidates; all when omitted.
        """
        ids, starts = self.members(numbers)
        norms = np.abs(self.columns.correlate(R, ids)).sum(axis=1, dtype=np.float64)
        return self.sums(norms, starts)

    def members(self, numbers: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the column ids of candidates, one after the other, and where each begins.

        ``None`` stands for all columns in their order, and for candidates of one column each.
        """
        if self.order is None:
            return numbers, None
        if numbers is None:
            return self.order, self.starts[:-1]
        features = [self.features(c) for c in numbers]
        return np.concatenate(features), np.cumsum([0] + [len(ids) for ids in features[:-1]])

    def sums(self, values: np.ndarray, starts: np.ndarray | None) -> np.ndarray:
        """Return the sum over each candidate's columns, for values in the order of members."""
        return values if starts is None else np.add.reduceat(values, starts)


class Criterion(Protocol):
    """What a search asks of a criterion."""

    def score(self, pool: Pool, state: Any, numbers: np.ndarray | None) -> np.ndarray:
        """Return the scores (higher is better) of these candidates, or of all for ``None``."""
        ...


class Search(Protocol):
    """What the learner asks of a search."""

    def best(
        self, pool: Pool, state: SearchState, criterion: Criterion, excluded: np.ndarray, n: int = 1
    ) -> list[Candidate]:
        """Return the ``n`` best candidates that are not ``excluded`` (a mask), the best first.

        Fewer where no more are left. Ties go to the lowest number, so that a run can be repeated.
        """
        ...
