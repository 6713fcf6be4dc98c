"""Criteria: how much a candidate promises (ShareBoost, algorithm 1 and §3.1).

``gradient`` is the cheapest and the paper's choice; ``line``, ``column`` and ``full`` measure the
decrease of the objective that more and more free steps give, at growing cost. On a large pool use
them with the ``screened`` search. ``orthogonal`` costs little more than ``gradient`` and sees what
the chosen columns already explain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.losses import Loss
from visionshare.registry import Registry
from visionshare.search.orthogonal import Orthogonal
from visionshare.search.pool import Criterion, Pool, RefitState, SearchState
from visionshare.solvers import ActiveSet, minimize

__all__ = ["CRITERIA", "Column", "Criterion", "Full", "Gradient", "LineSearch", "make_criterion"]


@dataclass(frozen=True)
class Gradient:
    """Σ_{j∈J} ‖∂L/∂W_{·,j}‖₁, the gradient's norm (algorithm 1, §3.2).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, criterion=Gradient()).fit(X[:300], y[:300]).support_.size
    2
    """

    def score(self, pool: Pool, state: SearchState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the gradient norms."""
        return pool.gradient_norms(state.residual, numbers)


class _Decrease(ABC):
    """Base of the criteria that try each candidate: the decrease of the objective."""

    def score(self, pool: Pool, state: RefitState, numbers: np.ndarray | None) -> np.ndarray:
        """Return the decreases."""
        numbers = np.arange(pool.size) if numbers is None else numbers
        return np.array([self._decrease(pool, state, pool.features(c)) for c in numbers])

    @abstractmethod
    def _decrease(self, pool: Pool, state: RefitState, features: np.ndarray) -> float:
        """Return the decrease that one candidate gives."""


@dataclass(frozen=True)
class LineSearch(_Decrease):
    """L(W) − min_{α ≥ 0} L(W − α g_J), a line search along the gradient (§3.1, with L for R).

    The penalty is ignored, as in the paper.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, criterion=LineSearch()).fit(X[:300], y[:300]).support_.size
    2
    """

    def _decrease(self, pool: Pool, state: RefitState, features: np.ndarray) -> float:
        X = pool.columns.columns_of(features)
        active = state.active
        loss = state.loss
        D = active.beside(X)
        direction = np.zeros((active.k, len(features) + 1))
        direction[:, 1:] = -active.total(_plain_products, X, state.residual).T
        Zd = D.scores(direction)
        alpha = 0.0
        best = state.loss_value
        for _ in range(12):
            moved = state.Z + active.dtype.type(alpha) * Zd
            slope, bend = active.total(_derivatives, loss, moved, Zd)
            if bend <= 0:
                break
            step = -slope / bend
            while alpha + step < 0:
                step *= 0.5
            value = active.value(loss, state.Z + active.dtype.type(alpha + step) * Zd)
            while value > best and abs(step) > 1e-9 * (1 + alpha):
                step *= 0.5
                value = active.value(loss, state.Z + active.dtype.type(alpha + step) * Zd)
            if best - value <= 1e-7 * abs(best):
                best = min(best, value)
                break
            alpha = alpha + step
            best = value
        return state.loss_value - best


@dataclass(frozen=True)
class Column(_Decrease):
    """F(W) − min over the candidate's own weights, all others fixed (§3.1).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, criterion=Column()).fit(X[:300], y[:300]).support_.size
    2
    """

    def _decrease(self, pool: Pool, state: RefitState, features: np.ndarray) -> float:
        alone = state.active.beside(pool.columns.columns_of(features))
        start = np.zeros((state.active.k, alone.n + 1))
        solution = minimize(alone, state.loss, state.penalty, start, tol=1e-7, Z=state.Z)
        at_zero = state.penalty.value(start[:, 1:])
        return state.loss_value + at_zero - solution.value


@dataclass(frozen=True)
class Full(_Decrease):
    """F(W) − min over the whole support with the candidate added (§3.1).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> ShareBoost(rounds=2, criterion=Full()).fit(X[:300], y[:300]).support_.size
    2
    """

    def _decrease(self, pool: Pool, state: RefitState, features: np.ndarray) -> float:
        active = state.active
        n = active.n
        active.append(pool.columns.columns_of(features))
        try:
            start = np.zeros((active.k, active.n + 1))
            start[:, : n + 1] = state.W
            added = state.penalty.value(start[:, 1:]) - state.penalty.value(state.W[:, 1:])
            solution = minimize(active, state.loss, state.penalty, start, tol=1e-6, Z=state.Z)
            return state.value + added - solution.value
        finally:
            active.keep(np.arange(n))


def _derivatives(
    active: ActiveSet, loss: Loss, Z: np.ndarray, Zd: np.ndarray
) -> tuple[float, float]:
    """Return the first and second derivative of the loss along the scores' direction Zd."""
    slope = bend = 0.0
    for i in range(active.n_tiles):
        _, R = loss.residual(Z[i], active.y[i], active.omega[i])
        P = loss.curvature(Z[i], active.y[i])
        mean = np.sum(P * Zd[i], axis=0)
        slope += float(np.sum(R * Zd[i], dtype=np.float64))
        spread = np.sum(P * Zd[i] ** 2, axis=0) - mean**2
        bend += float(np.dot(spread.astype(np.float64), active.omega[i]))
    return slope, bend


def _plain_products(active: ActiveSet, X: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return XR (n, k) in float64, for columns as rows of X."""
    return np.asarray(X.astype(np.float64) @ R.astype(np.float64))


CRITERIA: Registry[Criterion] = Registry(
    "criterion",
    {
        "gradient": Gradient,
        "orthogonal": Orthogonal,
        "line": LineSearch,
        "column": Column,
        "full": Full,
    },
    ("score",),
)


def make_criterion(given: str | Criterion, **options: Any) -> Criterion:
    """Return the criterion of a name and its options, or a fresh copy of a criterion.

    Raises
    ------
    InputError
        If no criterion has that name, or it takes no such option.

    Examples
    --------
    >>> make_criterion("orthogonal").floor
    0.1
    """
    return CRITERIA.make(given, **options)
