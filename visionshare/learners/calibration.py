"""Calibration: a temperature for scores that were trained with a margin."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from visionshare.columns import Columns, Totals
from visionshare.losses import Loss, MulticlassLogistic
from visionshare.penalties import Penalty
from visionshare.scores import two_sided
from visionshare.solvers import ActiveSet, minimize

FOLDS = 3
# Features whose values assign an example to its fold.
FOLD_FEATURES = 8


def fit_temperature(
    scores: np.ndarray, y: np.ndarray, omega: np.ndarray, where: Totals | None = None
) -> float:
    """Return the T that minimizes the weighted log loss of softmax(scores / T)."""
    where = where or Totals()
    y = where.of_examples(y)
    omega = where.of_examples(omega)
    weighed = where.each(_weighed, scores, y, omega, where.total(np.sum, omega))
    return _temperature(lambda inverse: where.total(_slope, weighed, inverse))


def _weighed(
    scores: np.ndarray, y: np.ndarray, omega: np.ndarray, total: float
) -> tuple[np.ndarray, ...]:
    """Return scores (k, m), classes and fractions of the weight."""
    return np.ascontiguousarray(two_sided(scores).T, dtype=np.float64), y, omega / total


def held_out_temperature(active: ActiveSet, scores: np.ndarray) -> float:
    """Return the temperature for scores of an active set's examples, by their weights."""
    counted = active.each(_counted, scores, active.total(_weight))
    return _temperature(lambda inverse: active.total(_counted_slope, counted, inverse))


def _weight(active: ActiveSet) -> float:
    return float(active.weights.sum())


def _counted(active: ActiveSet, scores: np.ndarray, total: float) -> tuple[np.ndarray, ...]:
    """Return scores (k, n), classes and weights of the examples that count."""
    flat = scores if scores.ndim == 2 else active.flat(scores)
    rows = active.weights > 0
    Z = np.ascontiguousarray(flat[rows].T, dtype=np.float64)
    return Z, active.labels[rows], active.weights[rows] / total


def _counted_slope(_: ActiveSet, counted: tuple[np.ndarray, ...], inverse: float) -> float:
    return _slope(counted, inverse)


def _slope(weighed: tuple[np.ndarray, ...], inverse: float) -> float:
    """Return the log loss's derivative in 1/T: it is convex in that, and so has one root."""
    Z, y, weights = weighed
    plain = MulticlassLogistic(margin=0.0)
    return float(np.sum(plain.residual(Z * inverse, y, weights)[1] * Z))


def _temperature(slope: Callable[[float], float]) -> float:
    from scipy.optimize import brentq

    low = float(np.exp(-6.0))
    high = float(np.exp(4.0))
    if slope(low) >= 0:
        return 1 / low
    if slope(high) <= 0:
        return 1 / high
    return float(1 / brentq(slope, low, high, xtol=1e-14, rtol=1e-14))


def with_an_error(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return examples, and where all are right one more (the rule of succession)."""
    # Their best temperature would be 0, and every probability 1. The one more is wrong by as much
    # as the least sure example is right.
    true_scores = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    others = scores.copy()
    np.put_along_axis(others, y[:, None], -np.inf, axis=1)
    margin = true_scores - others.max(axis=1)
    if (margin <= 0).any():
        return scores, y
    i = int(np.argmin(margin))
    wrong = scores[i].copy()
    rival = int(np.argmax(others[i]))
    wrong[[y[i], rival]] = wrong[[rival, y[i]]]
    return np.concatenate([scores, wrong[None]]), np.append(y, y[i])


def row_folds(rows: np.ndarray, n_folds: int) -> np.ndarray:
    """Return a fold for each row, by its content."""
    # Equal rows share a fold, also where one has −0 and the other 0. A row's fold depends on
    # nothing else: neither on the order of the examples nor on which others are there.
    # −0 + 0 is 0.
    rows = np.ascontiguousarray(rows) + rows.dtype.type(0)
    return np.array([zlib.crc32(row.tobytes()) % n_folds for row in rows], dtype=np.int64)


def example_folds(active: ActiveSet, columns: Columns, support: np.ndarray) -> np.ndarray:
    """Return a fold for each example, of :data:`FOLDS`, by its values of the first features."""
    values = columns.columns_of(support[:FOLD_FEATURES], scaled=False)
    return active.each(_folds, values)


def _folds(_: ActiveSet, values: np.ndarray) -> np.ndarray:
    return row_folds(values.T, FOLDS)


def cross_fitted_scores(
    active: ActiveSet,
    loss: Loss,
    penalty: Penalty,
    W: np.ndarray,
    folds: np.ndarray,
    refit_tol: float,
) -> np.ndarray | None:
    """Return each example's scores from a refit that left its fold out."""
    # The features stay as chosen on all examples; only the weights are refitted.
    n_folds = int(active.total(_largest_fold, folds, how="max")) + 1
    counts = active.total(_class_counts, folds, n_folds)
    others = counts.sum(axis=0) - counts
    present = counts.sum(axis=0) > 0
    if not counts.any(axis=1).all() or not ((others > 0) == present).all():
        return None
    scores: np.ndarray = active.each(_no_scores)
    for fold in range(n_folds):
        total = active.total(_training_weight, folds, fold)
        training = active.reweighted(active.each(_training_weights, folds, fold, total))
        W_fold = minimize(training, loss, penalty, W, tol=refit_tol).W
        scores = active.each(_merged, scores, active.scores(W_fold), folds, fold)
    return scores


def _largest_fold(_: ActiveSet, folds: np.ndarray) -> int:
    return int(folds.max())


def _class_counts(active: ActiveSet, folds: np.ndarray, n_folds: int) -> np.ndarray:
    """Return how many examples with a weight each fold has of each class, (folds, k)."""
    counts = np.zeros((n_folds, active.k), np.int64)
    weighs = active.weights > 0
    np.add.at(counts, (folds[weighs], active.labels[weighs]), 1)
    return counts


def _training_weight(active: ActiveSet, folds: np.ndarray, fold: int) -> float:
    return float((active.weights * (folds != fold)).sum())


def _training_weights(active: ActiveSet, folds: np.ndarray, fold: int, total: float) -> np.ndarray:
    return active.weights * (folds != fold) / total


def _no_scores(active: ActiveSet) -> np.ndarray:
    return np.zeros((active.m, active.k))


def _merged(
    active: ActiveSet, scores: np.ndarray, Z: np.ndarray, folds: np.ndarray, fold: int
) -> np.ndarray:
    """Return scores (m, k) of one fold from tiled ones."""
    return np.where((folds == fold)[:, None], active.flat(Z), scores)
