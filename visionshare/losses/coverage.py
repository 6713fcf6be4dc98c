"""Coverage: how far down the list of scores the true class is. To measure with, not to minimize."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError


def ranks(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the position of each example's true class in its sorted scores, 0 where it is right.

    Among equal scores the class of the lower index comes first, as it does in a prediction.

    Parameters
    ----------
    scores : ndarray of shape (m, k), or (m,) for two classes
    y : ndarray of int, shape (m,)
        Class indexes from 0 to k − 1.

    Returns
    -------
    ndarray of int64, shape (m,)

    Raises
    ------
    InputError
        If the shapes do not fit or a class has no score.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §6.

    Examples
    --------
    >>> ranks(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([0, 1])).tolist()
    [0, 2]
    """
    Z = np.asarray(scores, np.float64)
    y = np.asarray(y)
    if Z.ndim == 1:
        # One score for two classes: the second is predicted where it is above 0.
        Z = np.column_stack([np.zeros(len(Z)), Z])
    if Z.ndim != 2 or y.shape != Z.shape[:1]:
        raise InputError("scores", np.shape(scores), f"a row for each of {len(y)} examples")
    if y.dtype.kind not in "iu" or (y.size and (y.min() < 0 or y.max() >= Z.shape[1])):
        raise InputError("y", y.dtype, f"class indexes from 0 to {Z.shape[1] - 1}")
    true = Z[np.arange(len(y)), y][:, None]
    before = np.arange(Z.shape[1]) < y[:, None]
    return np.asarray(np.sum((true < Z) | ((true == Z) & before), axis=1))


def coverage(scores: np.ndarray, y: np.ndarray, omega: np.ndarray | None = None) -> float:
    """Return the mean position of the true class, see :func:`ranks`; 0 is perfect, k − 1 the worst.

    Parameters
    ----------
    scores, y
        As for :func:`ranks`.
    omega : ndarray of shape (m,), optional
        Weights of the examples; equal when omitted.

    Examples
    --------
    >>> coverage(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([0, 1]))
    1.0
    """
    return float(np.average(ranks(scores, y), weights=omega))
