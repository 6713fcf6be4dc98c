"""Alpha and rounds of a forward selection, chosen on examples that it did not see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from visionshare.columns import Columns
from visionshare.learners.path import support_of
from visionshare.learners.ridge_rounds import RidgeSettings, kept_rounds, ridge_rounds
from visionshare.learners.rounds import Round
from visionshare.search import Pool

# Of the sum of weights: alphas that are tried, the largest first.
_SHARES = tuple(10.0 ** (n / 2) for n in range(4, -7, -1))
_MOST_FOLDS = 20
# Rounds that are tried at most.
_MOST_ROUNDS = 100


def chosen_settings(
    columns: Columns, y: np.ndarray, omega: np.ndarray, settings: RidgeSettings, mean: bool = True
) -> RidgeSettings:
    """Return settings with the alpha and the rounds of least error on left-out examples."""
    # Each fold selects anew: the left-out scores of a round's columns were no guide, as these
    # columns were selected on the example that is left out. With 20 examples or fewer each is a
    # fold; examples of weight 0 are in none. A selection of more rounds begins with the selection
    # of fewer: all numbers of rounds cost one selection.
    if settings.rounds is not None and settings.alpha is not None:
        return settings
    most = min(settings.rounds or _MOST_ROUNDS, columns.shape[1])
    shares = _SHARES if settings.alpha is None else (settings.alpha / omega.sum(),)
    folds = _folds(y, omega)
    errors = np.zeros((len(shares), most))
    labels = columns.of_examples(y)
    weights = columns.of_examples(omega)
    for fold in range(folds.max() + 1):
        rows = folds == fold
        part = np.where(rows, 0.0, omega)
        left_out = columns.of_examples(rows)
        columns.fit_scaling("unit_variance", part)
        pool = Pool(columns)
        start = np.dot(part, y) / part.sum() if mean else 0.0
        for i, share in enumerate(shares):
            one_fold = replace(settings, rounds=most, alpha=share * part.sum())
            rounds = kept_rounds(columns, ridge_rounds(pool, y, part, one_fold))
            features = support_of(pool, rounds[-1].candidates if rounds else ())
            coef = _each_round(rounds, most, len(features))
            values = columns.columns_of(features)
            errors[i] += columns.total(
                _left_out_errors, values, coef, start, left_out, labels, weights
            )
    if settings.rounds is not None:
        share = shares[int(np.argmin(errors[:, -1]))]
        return replace(settings, alpha=float(share * omega.sum()))
    best, number = np.unravel_index(int(np.argmin(errors)), errors.shape)
    alpha = settings.alpha or float(shares[best] * omega.sum())
    return replace(settings, rounds=int(number) + 1, alpha=alpha)


def _each_round(rounds: list[Round], most: int, n_features: int) -> np.ndarray:
    """Return the weights after each of ``most`` rounds; those after the last are the last ones."""
    coef = np.zeros((most, n_features))
    for number, record in enumerate(rounds):
        coef[number:] = 0.0
        coef[number:, : record.coef.shape[1]] = record.coef[0]
    return coef


def _left_out_errors(
    values: np.ndarray,
    coef: np.ndarray,
    start: float,
    rows: np.ndarray,
    y: np.ndarray,
    omega: np.ndarray,
) -> np.ndarray:
    """Return the weighted squared error of scores on some rows, with each row of weights."""
    scores = start + coef @ np.asarray(values, np.float64)[:, rows]
    return np.square(np.clip(scores, -1, 1) - y[rows]) @ omega[rows]


def _folds(y: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Return the fold of each example, (m,): the classes are divided alike; -1 for weight 0."""
    counted = np.flatnonzero(omega > 0)
    order = counted[np.argsort(y[counted], kind="stable")]
    folds = np.full(len(y), -1, np.int64)
    folds[order] = np.arange(len(order)) % min(_MOST_FOLDS, len(order))
    return folds
