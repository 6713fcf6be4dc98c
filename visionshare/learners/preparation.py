"""What estimators do before they learn and before they score: searches, weights, columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.search import Search, make_search

__all__ = ["chosen_columns", "search_of", "weights_of"]


def search_of(learner: Any) -> Search:
    """Return the search that a learner's settings ask for; random ones get the learner's seed.

    Raises
    ------
    InputError
        If the search is unknown, or does not take these options.
    """
    options = dict(learner.search_options or {})
    if learner.search == "random":
        options.setdefault("random_state", learner.random_state)
    try:
        return make_search(learner.search, **options)
    except TypeError as error:
        accepted = f"arguments of the search ({error})"
        raise InputError("search_options", options, accepted) from None


def weights_of(
    sample_weight: np.ndarray | None, y: np.ndarray, class_weight: Any = None
) -> np.ndarray:
    """Return the examples' weights (m,), float64, at least 0 and one of them above.

    Raises
    ------
    InputError
        If all are zero.
    """
    omega: np.ndarray = _check_sample_weight(
        sample_weight, np.empty((len(y), 1)), dtype=np.float64, ensure_non_negative=True
    )
    if class_weight is not None:
        omega = omega * compute_sample_weight(class_weight, y)
    if not omega.sum() > 0:
        raise InputError("sample_weight", "all zero", "weights of which one is above 0")
    return omega


def chosen_columns(learner: Any, X: np.ndarray | Columns) -> np.ndarray:
    """Return the columns (m, n_support) of a fitted learner's support, as they are."""
    check_is_fitted(learner)
    if isinstance(X, Columns):
        return X.columns_of(learner.support_, scaled=False).T
    table = validate_data(learner, X, dtype=(np.float64, np.float32), reset=False)
    return np.asarray(table[:, learner.support_])
