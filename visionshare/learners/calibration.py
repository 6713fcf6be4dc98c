"""Calibration: a temperature for scores that were trained with a margin."""

from __future__ import annotations

import zlib

import numpy as np

from visionshare.columns import Columns
from visionshare.losses import Loss, MulticlassLogistic
from visionshare.penalties import Penalty
from visionshare.solvers import ActiveSet, minimize

__all__ = [
    "FOLDS",
    "cross_fitted_scores",
    "example_folds",
    "fit_temperature",
    "row_folds",
    "with_an_error",
]

FOLDS = 3
# Features whose values assign an example to its fold.
_FOLD_FEATURES = 8


def fit_temperature(scores: np.ndarray, y: np.ndarray, omega: np.ndarray) -> float:
    """Return the T that minimizes the weighted log loss of softmax(scores / T).

    Parameters
    ----------
    scores : ndarray of shape (m, k)
        Scores of examples that did not train the weights.
    y : ndarray of shape (m,)
        Class indexes.
    omega : ndarray of shape (m,)
        Weights.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[4.0, 0.0]] * 4)
    >>> y = np.array([0, 0, 0, 1])
    >>> round(float(fit_temperature(scores, y, np.ones(4)) * np.log(3)), 3)
    4.0
    """
    from scipy.optimize import brentq

    plain = MulticlassLogistic(margin=0.0)
    Z = np.ascontiguousarray(scores.T, dtype=np.float64)
    weights = omega / omega.sum()

    # The log loss is convex in 1/T: its derivative there has one root.
    def slope(inverse: float) -> float:
        return float(np.sum(plain.residual(Z * inverse, y, weights)[1] * Z))

    low, high = np.exp(-6.0), np.exp(4.0)
    if slope(low) >= 0:
        return float(1 / low)
    if slope(high) <= 0:
        return float(1 / high)
    return float(1 / brentq(slope, low, high, xtol=1e-14, rtol=1e-14))


def with_an_error(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return examples, and where all are right one more (the rule of succession).

    Their best temperature would be 0, and every probability 1. The one more is wrong by as much as
    the least sure example is right.

    Parameters
    ----------
    scores : ndarray of shape (m, k)
    y : ndarray of shape (m,)
        Class indexes.

    Examples
    --------
    >>> scores, y = with_an_error(np.array([[4.0, 0.0], [1.0, 2.0]]), np.array([0, 1]))
    >>> scores[2].tolist(), int(y[2])
    ([2.0, 1.0], 1)
    """
    true_scores = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    others = scores.copy()
    np.put_along_axis(others, y[:, None], -np.inf, axis=1)
    margin = true_scores - others.max(axis=1)
    if (margin <= 0).any():
        return scores, y
    i = int(np.argmin(margin))
    wrong, rival = scores[i].copy(), int(np.argmax(others[i]))
    wrong[[y[i], rival]] = wrong[[rival, y[i]]]
    return np.concatenate([scores, wrong[None]]), np.append(y, y[i])


def row_folds(rows: np.ndarray, n_folds: int) -> np.ndarray:
    """Return a fold for each row, by its content.

    Equal rows share a fold, and a row's fold depends on nothing else: neither on the order of
    the examples nor on which others are there.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
    n_folds : int
    """
    rows = np.ascontiguousarray(rows)
    return np.array([zlib.crc32(row.tobytes()) % n_folds for row in rows], dtype=np.int64)


def example_folds(columns: Columns, support: np.ndarray) -> np.ndarray:
    """Return a fold for each example, of :data:`FOLDS`, by its values of the first features."""
    return row_folds(columns.columns_of(support[:_FOLD_FEATURES], scaled=False).T, FOLDS)


def cross_fitted_scores(
    active: ActiveSet,
    loss: Loss,
    penalty: Penalty,
    W: np.ndarray,
    folds: np.ndarray,
    refit_tol: float,
) -> np.ndarray | None:
    """Return each example's scores from a refit that left its fold out.

    The features stay as chosen on all examples; only the weights are refitted.

    Returns
    -------
    ndarray of shape (m, k) or None
        None where a fold or a class would be left without examples.
    """
    y, omega = active.labels, active.weights
    present = np.unique(y[omega > 0])
    scores = np.zeros((active.m, active.k))
    for fold in range(int(folds.max()) + 1):
        left_out = folds == fold
        training = omega * ~left_out
        if not (omega * left_out).any() or not np.array_equal(np.unique(y[training > 0]), present):
            return None
        others = active.reweighted(training / training.sum())
        W_fold = minimize(others, loss, penalty, W, tol=refit_tol).W
        scores[left_out] = active.flat(active.scores(W_fold))[left_out]
    return scores
