"""Theorems on ShareBoost: how many rounds and features suffice, and how far its error can rise."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from visionshare.errors import InputError
from visionshare.generators.checks import check_whole
from visionshare.learners.parameters import check_fraction
from visionshare.learners.shareboost import ShareBoost


def shareboost_rounds(weights: np.ndarray, eps: float) -> int:
    """Return how many rounds bring ShareBoost's loss within ``eps`` of the loss of a matrix.

    Theorem 2: T = ⌈4 ‖W*‖²_{∞,1} / ε⌉ rounds suffice, for features in [−1, 1]; each adds at most
    one feature.

    Parameters
    ----------
    weights : ndarray of shape (k, d)
        W*: any weights, one row per class, one column per feature.
    eps : float
        ε, above 0.

    Raises
    ------
    InputError
        If the weights or ``eps`` are not finite, or ``eps`` is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> shareboost_rounds(np.array([[2.0, 0.0], [-1.0, 1.0]]), eps=0.5)
    72
    """
    _check_positive("eps", eps)
    norm = float(np.abs(weights).max(axis=0, initial=0.0).sum())
    if not math.isfinite(norm):
        raise InputError("weights", "not all finite", "finite numbers (k, d)")
    return math.ceil(4 * norm**2 / eps)


def shareboost_features(n_features: int, largest: float, eps: float) -> int:
    """Return how many features ShareBoost needs where ``n_features`` of bounded weight suffice.

    Corollary 1: if weights of ``n_features`` columns, none larger than ``largest``, have loss ε,
    ShareBoost has a loss of at most 2 ε after ⌈4 (n_features · largest)² / ε⌉ rounds.

    Raises
    ------
    InputError
        If an argument is not above 0.

    Examples
    --------
    >>> shareboost_features(3, largest=1.0, eps=0.5)
    72
    """
    check_whole("n_features", n_features, 1)
    _check_positive("largest", largest)
    return shareboost_rounds(np.full((1, n_features), largest), eps)


def generalization_gap(
    model: ShareBoost, n_examples: int, n_columns: int, delta: float = 0.05
) -> float:
    """Return what theorem 1 adds to ShareBoost's training error, without its constant.

    With T features, k classes, d columns in the pool and m examples:
    √((Tk log(Tk) log k + T log d + log(1/δ)) / m). A pool costs its logarithm. The number compares
    models with each other; it is no error in percent.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> model = ShareBoost(rounds=2).fit(*load_iris(return_X_y=True))
    >>> round(generalization_gap(model, n_examples=150, n_columns=4), 2)
    0.34
    """
    check_is_fitted(model)
    check_whole("n_examples", n_examples, 1)
    check_whole("n_columns", n_columns, 1)
    check_fraction("delta", delta)
    T = len(model.support_)
    k = len(model.classes_)
    chosen = T * k * math.log(T * k) * math.log(k) + T * math.log(n_columns) if T else 0.0
    return math.sqrt((chosen + math.log(1 / delta)) / n_examples)


def _check_positive(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise InputError(name, value, "a finite number above 0")
