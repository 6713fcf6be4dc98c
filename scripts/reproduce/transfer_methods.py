"""The competitors of GreedyTL on a few examples, all under the paper's rule.

Each takes standardized examples (mean 0, variance 1) and gives one weight per column and no
intercept: a score above 0, the mean of the few, is the class. Regularization is chosen by
cross-validation on these few examples alone, by the balanced error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, enet_path
from sklearn.model_selection import StratifiedKFold

from visionshare.columns import ArrayColumns
from visionshare.learners.ridge_choice import chosen_settings
from visionshare.learners.ridge_rounds import RidgeSettings, ridge_rounds
from visionshare.learners.rounds import Round
from visionshare.search import Pool, make_search

ALPHAS = 10.0 ** np.arange(-4, 5)
# Below 0.1 an ℓ1 model of 20 examples is nearly empty; above 100 it separates them without error.
COSTS = 10.0 ** np.arange(-1, 3)
MIXTURE, PATH = 0.5, 20
ROUNDS, TOL, NO_ALPHA = 100, 1e-4, 1e-6


@dataclass(frozen=True)
class Few:
    """Standardized examples Z (m, d + n), labels ±1, and how many columns are features."""

    Z: np.ndarray
    y: np.ndarray
    d: int

    def rows(self, which: np.ndarray) -> Few:
        """Return some of the examples, standardized anew."""
        return few_of(self.Z[which], self.y[which], self.d)


def balanced(y: np.ndarray) -> np.ndarray:
    """Return weights of sum m that give both classes the same."""
    return np.where(y > 0, 0.5 / np.sum(y > 0), 0.5 / np.sum(y < 0)) * len(y)


def few_of(Z: np.ndarray, y: np.ndarray, d: int) -> Few:
    """Return examples of mean 0 and variance 1."""
    offset, scale = scaling(Z)
    return Few((Z - offset) * scale, y, d)


def scaling(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and scale of every column; scale 0 where it is constant."""
    offset, size = Z.mean(axis=0), Z.std(axis=0)
    return offset, np.where(size > 1e-9, 1 / np.where(size > 1e-9, size, 1), 0)


def folds(few: Few) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and validation rows; at most three folds, each with both classes."""
    n = min(3, int(np.sum(few.y > 0)), int(np.sum(few.y < 0)))
    yield from StratifiedKFold(n, shuffle=True, random_state=0).split(few.Z, few.y)


def chosen(few: Few, path: Callable[[Few], np.ndarray]) -> np.ndarray:
    """Return the weights of a path (settings, columns) that cross-validation likes best.

    By balanced error, then by squared error; the first, most regularized, among equals.
    """
    wrong, squares = np.zeros(1), np.zeros(1)
    for train, validation in folds(few):
        offset, scale = scaling(few.Z[train])
        scores = path(few.rows(train)) @ ((few.Z[validation] - offset) * scale).T
        omega, y = balanced(few.y)[validation], few.y[validation]
        wrong = wrong + ((scores > 0) != (y > 0)) @ omega
        squares = squares + ((np.clip(scores, -1, 1) - y) ** 2) @ omega
    best = np.lexsort((np.arange(len(wrong)), np.round(squares, 9), np.round(wrong, 9)))[0]
    return path(few)[best]


def rls(few: Few) -> np.ndarray:
    """Return ridge regression; the alpha of the lowest leave-one-out error."""
    A, omega = few.Z, balanced(few.y)
    values, vectors = np.linalg.eigh(A @ A.T)
    best, weights = (np.inf, np.inf), np.zeros(A.shape[1])
    for alpha in ALPHAS[::-1]:
        inverse = (vectors / (np.maximum(values, 0) + alpha)) @ vectors.T
        dual = inverse @ few.y
        left_out = few.y - dual / np.diag(inverse)
        wrong = omega @ ((left_out > 0) != (few.y > 0))
        key = (round(wrong, 9), omega @ (np.clip(left_out, -1, 1) - few.y) ** 2)
        if key < best:
            best, weights = key, A.T @ dual
    return weights


def no_transfer(few: Few) -> np.ndarray:
    """Return ridge regression on the features alone."""
    weights = np.zeros(few.Z.shape[1])
    weights[: few.d] = rls(Few(few.Z[:, : few.d], few.y, few.d))
    return weights


def l1_logistic(few: Few) -> np.ndarray:
    """Return logistic regression with an ℓ1 penalty."""

    def path(part: Few) -> np.ndarray:
        weights = []
        for cost in COSTS:
            model = LogisticRegression(
                l1_ratio=1, C=cost, solver="liblinear", fit_intercept=False, random_state=0
            )
            weights.append(model.fit(part.Z, part.y).coef_[0])
        return np.array(weights)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return chosen(few, path)


def elastic_net(few: Few) -> np.ndarray:
    """Return squared errors with half of an ℓ1 and half of an ℓ2 penalty."""
    top = np.abs(few.Z.T @ few.y).max() / len(few.y) / MIXTURE
    alphas = top * np.logspace(0, -3, PATH)

    def path(part: Few) -> np.ndarray:
        A = np.asfortranarray(part.Z)
        return enet_path(A, part.y, l1_ratio=MIXTURE, alphas=alphas, tol=1e-3)[1].T

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return chosen(few, path)


def _rounds(few: Few, alpha: float, tol: float, rounds: int, search: str, seed: int) -> list[Round]:
    columns = ArrayColumns(few.Z, dtype="float64")
    columns.fit_scaling("unit_variance")
    options: dict[str, Any] = {} if search == "exhaustive" else {"random_state": seed}
    settings = RidgeSettings(rounds, alpha, tol, make_search(search, **options))
    return list(ridge_rounds(Pool(columns), few.y, np.ones(len(few.y)), settings))


def forward_regression(few: Few) -> np.ndarray:
    """Return greedy selection without regularization; how many columns, by cross-validation."""

    most = int(min(np.sum(few.y > 0), np.sum(few.y < 0))) + 2

    def path(part: Few) -> np.ndarray:
        measured = np.zeros((most, part.Z.shape[1]))
        rounds = _rounds(part, NO_ALPHA, 0.0, most, "exhaustive", 0)
        support = [int(r.entered[0]) for r in rounds]
        for r in rounds:
            measured[r.number - 1 :, support] = 0
            measured[r.number - 1 :, support[: r.number]] = r.coef[0]
        return measured

    return chosen(few, path)


def greedytl(few: Few) -> np.ndarray:
    """Return GreedyTL at the paper's λ = 1 and δ = 1e-4."""
    return _weights(few, _rounds(few, 1.0, TOL, ROUNDS, "exhaustive", 0))


def greedytl_mean_loss(few: Few) -> np.ndarray:
    """Return the same with the λ of the mean loss of equation (2): m·λ in algorithm 1."""
    return _weights(few, _rounds(few, float(len(few.y)), TOL, ROUNDS, "exhaustive", 0))


def greedytl_59(few: Few) -> np.ndarray:
    """Return GreedyTL, each round over 59 random candidates."""
    return _weights(few, _rounds(few, 1.0, TOL, ROUNDS, "random", 0))


def greedytl_alpha(few: Few) -> np.ndarray:
    """Return GreedyTL with λ chosen on left-out examples, for the paper's δ."""
    return _chosen_rounds(few, ROUNDS)


def greedytl_chosen(few: Few) -> np.ndarray:
    """Return GreedyTL with λ and the number of columns chosen together on left-out examples."""
    return _chosen_rounds(few, None)


def _chosen_rounds(few: Few, rounds: int | None) -> np.ndarray:
    columns = ArrayColumns(few.Z, dtype="float64")
    given = RidgeSettings(rounds, None, TOL, make_search("exhaustive"))
    omega = np.ones(len(few.y))
    settings = chosen_settings(columns, few.y, omega, given, mean=False)
    columns.fit_scaling("unit_variance")
    return _weights(few, list(ridge_rounds(Pool(columns), few.y, omega, settings)))


def _weights(few: Few, rounds: list) -> np.ndarray:
    measured = np.zeros(few.Z.shape[1])
    if rounds:
        measured[rounds[-1].candidates] = rounds[-1].coef[0]
    return measured


METHODS: dict[str, Callable[[Few], np.ndarray]] = {
    "no transfer (RLS)": no_transfer,
    "RLS (src+feat)": rls,
    "L1-logistic": l1_logistic,
    "elastic net": elastic_net,
    "forward regression": forward_regression,
    "GreedyTL": greedytl,
    "GreedyTL, m·λ": greedytl_mean_loss,
    "GreedyTL-59": greedytl_59,
    "GreedyTL, λ chosen": greedytl_alpha,
    "GreedyTL, λ and number chosen": greedytl_chosen,
}
