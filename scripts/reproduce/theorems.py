"""What the theorems of GreedyTL promise of a fitted model: bounds without their constants.

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
