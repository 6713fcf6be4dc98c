"""What the papers' theorems promise of a fitted model: bounds without their constants.

The theorems hide constants and logarithms in O(·). The numbers here are what stands inside: they
compare models and numbers of examples with each other, and are no errors in percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from visionshare.errors import InputError
from visionshare.learners.greedytl import GreedyTL
from visionshare.learners.shareboost import ShareBoost


def generalization_gap(
    model: ShareBoost, examples: int, columns: int, delta: float = 0.05
) -> float:
    """Return what bounds the test error less the training error of ShareBoost."""
    # √((Tk·log(Tk)·log k + T·log d + log(1/δ)) / m): what is paid for T features grows with the
    # logarithm of the pool alone.
    check_is_fitted(model)
    for name, value in (("examples", examples), ("columns", columns)):
        if value < 1:
            raise InputError(name, value, "a number of at least 1")
    if not 0 < delta < 1:
        raise InputError("delta", delta, "a probability between 0 and 1")
    T = len(model.support_)
    k = len(model.classes_)
    if not T:
        return math.sqrt(math.log(1 / delta) / examples)
    chosen = T * k * math.log(T * k) * math.log(k) + T * math.log(columns)
    return math.sqrt((chosen + math.log(1 / delta)) / examples)


def shareboost_rounds(weights: np.ndarray, epsilon: float) -> int:
    """Return how many rounds bring ShareBoost's loss within ``epsilon`` of a matrix's loss."""
    # ⌈4 ‖W*‖²_{∞,1} / ε⌉, of theorem 2; it bounds the number of features too.
    _check_positive("epsilon", epsilon)
    norm = float(np.abs(weights).max(axis=0).sum())
    return math.ceil(4 * norm**2 / epsilon)


def shareboost_features(n_features: int, largest: float, epsilon: float) -> int:
    """Return how many features ShareBoost needs where a few of bounded weight suffice."""
    # ⌈4 r² c² / ε⌉, of corollary 1: its loss is at most 2 ε, for ``n_features`` weights of at most
    # ``largest`` whose loss is ε.
    _check_positive("n_features", n_features)
    _check_positive("largest", largest)
    return shareboost_rounds(np.full((1, n_features), largest), epsilon)


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise InputError(name, value, "a number above 0")


def transfer_gap(model: GreedyTL, X: np.ndarray, y: np.ndarray) -> float:
    """Return what bounds the risk less the training risk of GreedyTL of two classes."""
    # c + √(R·c) with c = (1 + kτ)/(λm): k sources were chosen, τ is the largest square of a score
    # of theirs at variance 1, and R the risk of their part of the score alone, cut at ±1. Good
    # sources make the slow term small. The λm of the theorem is the λ of algorithm 1.
    scores, weights = _source_scores(model, X)
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    part = np.clip(scores @ weights, -1, 1)
    largest = float((scores**2).max(initial=0.0))
    c = (1 + len(weights) * largest) / float(model.alphas_[0])
    return c + math.sqrt(float(np.mean((part - signs) ** 2)) * c)


@dataclass(frozen=True)
class Approximation:
    """How near a greedy selection is to the best one of as many columns."""

    correlation: float
    allowed: float
    epsilon: float

    @property
    def holds(self) -> bool:
        """Whether the columns are uncorrelated enough."""
        return self.correlation < self.allowed


def approximation(model: GreedyTL, X: np.ndarray) -> Approximation:
    """Return what theorem 3 asks of the columns, and its factor: how near the selection is."""
    _check_two_classes(model)
    Z = _standardized(model._with_scores(np.asarray(X, np.float64)))
    products = np.abs(Z.T @ Z) / len(Z)
    np.fill_diagonal(products, 0)
    # Of equation (2), whose errors are a mean.
    alpha = float(model.alphas_[0]) / len(Z)
    k = max(1, len(model.support_))
    gamma = float(products.max(initial=0.0))
    return Approximation(gamma, (1 + alpha) / (6 * k), 16 * (k + 1) ** 2 * gamma / (1 + alpha))


def selection_gap(model: GreedyTL, X: np.ndarray, y: np.ndarray) -> float:
    """Return what bounds the risk less the training risk of the best k columns."""
    # (1 + ε)R + c + √(R·c), with ε of :func:`approximation`, c of :func:`transfer_gap`, and R the
    # least λ/s + mean risk of s sources, s at most k: one good source makes it small. Infinite
    # where the columns are too correlated for the theorem.
    near = approximation(model, X)
    if not near.holds:
        return math.inf
    table = np.asarray(X, np.float64)
    scores = _standardized(model._with_scores(table)[:, table.shape[1] :])
    if not scores.shape[1]:
        raise InputError("model", "without sources", "one with sources")
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    k = len(model.support_)
    m = len(signs)
    risks = np.sort(np.mean((np.clip(scores, -1, 1) - signs[:, None]) ** 2, axis=0))[: max(k, 1)]
    sizes = np.arange(1, len(risks) + 1)
    alpha = float(model.alphas_[0])
    least = float(np.min(alpha / m / sizes + np.cumsum(risks) / sizes))
    c = (1 + k * float((scores**2).max())) / alpha
    return (1 + near.epsilon) * least + c + math.sqrt(least * c)


def _check_two_classes(model: GreedyTL) -> None:
    check_is_fitted(model)
    if len(model.classes_) != 2:
        raise InputError("model", f"of {len(model.classes_)} classes", "one of two classes")


def _source_scores(model: GreedyTL, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen sources' scores at variance 1, (m, k), and their weights."""
    _check_two_classes(model)
    table = np.asarray(X, np.float64)
    sources = model.support_ >= table.shape[1]
    Z = _standardized(model._with_scores(table)[:, model.support_[sources]])
    return Z, model.scaled_coef_[0, sources]


def _standardized(table: np.ndarray) -> np.ndarray:
    spread = table.std(axis=0)
    return (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1)
