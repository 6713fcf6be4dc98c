"""The regularization path: a learner at one alpha after the other, each begun at the last."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.checks import check_whole
from visionshare.learners.parameters import check_fraction


def regularization_path(
    learner: Any,
    X: np.ndarray | Columns,
    y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    *,
    alphas: Sequence[float] | None = None,
    n: int = 20,
    least: float = 1e-2,
) -> Iterator[Any]:
    """Yield fitted learners from the largest alpha to the least.

    Parameters
    ----------
    learner : estimator
        With ``alpha``, ``warm_start`` and ``alpha_max``, such as
        :class:`visionshare.learners.GroupFeatureClassifier`; it is not changed.
    X, y, sample_weight
        As in ``fit``.
    alphas : sequence of float, optional
        Which, in any order; when omitted ``n`` of them, evenly in the logarithm from λ_max, where
        the first weight is about to appear, down to ``least`` · λ_max.
    n : int, default 20
    least : float, default 1e-2

    Yields
    ------
    estimator
        Fitted; its ``alpha`` says which.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from visionshare import GroupFeatureRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> [len(m.support_) for m in regularization_path(GroupFeatureRegressor(), X, y, n=5)]
    [0, 4, 5, 7, 8]
    """
    if alphas is None:
        check_whole("n", n)
        check_fraction("least", least)
        largest = learner.alpha_max(X, y, sample_weight)
        if largest <= 0:
            raise InputError("X", "columns that no target depends on", "a column that matters")
        alphas = largest * np.geomspace(1, least, n)
    given = list(alphas) if np.iterable(alphas) else []
    if not given or not all(isinstance(s, Real) and 0 < float(s) < np.inf for s in given):
        raise InputError("alphas", alphas, "finite numbers above 0")
    model = clone(learner).set_params(warm_start=True)
    model.checkpoint = None
    for alpha in sorted(map(float, given), reverse=True):
        model.set_params(alpha=alpha).fit(X, y, sample_weight)
        # A later fit replaces attributes and changes none.
        yield copy.copy(model)
