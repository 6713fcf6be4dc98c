"""Criteria: how much a candidate promises.

``gradient`` is the cheapest and the choice of ShareBoost's paper (algorithm 1); ``orthogonal``
costs little more and sees what the chosen columns already explain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.registry import Registry
from visionshare.search.orthogonal import Orthogonal
from visionshare.search.pool import Criterion, Pool, SearchState

__all__ = ["CRITERIA", "Criterion", "Gradient", "make_criterion"]


@dataclass(frozen=True)
class Gradient:
    """Σ_{j∈J} ‖∂L/∂W_{·,j}‖₁, the gradient's norm (algorithm 1, §3.2).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, criterion=Gradient()).fit(X[:300], y[:300]).support_.size
    2
    """

    def score(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the gradient norms."""
        return pool.gradient_norms(state.residual, numbers)


CRITERIA: Registry[Criterion] = Registry(
    "criterion",
    {
        "gradient": Gradient,
        "orthogonal": Orthogonal,
    },
    ("score",),
)


def make_criterion(given: str | Criterion, **options: Any) -> Criterion:
    """Return the criterion of a name and its options, or a fresh copy of a criterion.

    Raises
    ------
    InputError
        If no criterion has that name, or it takes no such option.

    Examples
    --------
    >>> make_criterion("orthogonal").floor
    0.1
    """
    return CRITERIA.make(given, **options)
