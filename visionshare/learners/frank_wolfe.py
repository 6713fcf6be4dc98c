"""Forward greedy selection within an ℓ1 ball: a Frank–Wolfe step a round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from visionshare.columns import Columns
from visionshare.learners.rounds import Round
from visionshare.losses import TaskLoss
from visionshare.search import Pool, Search, SearchState, make_criterion

__all__ = ["Ball", "BallSettings", "ball_rounds"]


@dataclass(frozen=True)
class BallSettings:
    """The choices of a forward selection within a ball."""

    rounds: int
    max_features: int | None
    bound: float
    loss: TaskLoss
    tol: float
    search: Search


class Ball:
    """Weights within the ball: columns used, their weights, the intercept and the scores."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.support: list[int] = []
        self.weights: list[float] = []
        self.intercept = 0.0
        self.products = columns.of_examples(np.zeros(columns.shape[0]))

    def move(self, feature: int, column: Any, vertex: float, step: float) -> None:
        """Move to (1 − η) w + η · vertex · e_feature."""
        self.weights = [(1 - step) * w for w in self.weights]
        if feature not in self.support:
            self.support.append(feature)
            self.weights.append(0.0)
        self.weights[self.support.index(feature)] += step * vertex
        self.products = self.columns.each(_moved, self.products, column, vertex, step)


def _moved(products: np.ndarray, column: np.ndarray, vertex: float, step: float) -> np.ndarray:
    return np.asarray((1 - step) * products + step * vertex * column)


def ball_rounds(
    pool: Pool,
    ball: Ball,
    s: np.ndarray,
    c: np.ndarray,
    omega: np.ndarray,
    settings: BallSettings,
) -> Iterator[Round]:
    """Yield steps w ← (1 − η)w + ηB·sign(−g_j)e_j with j = argmax |g_j|."""
    # Η minimizes the quadratic that bounds the smooth loss from above along the step, clipped to
    # [0, 1]. The intercept is refitted after each step: it is outside the ball.
    loss = settings.loss
    bound = settings.bound
    columns = pool.columns
    target = _Target(*map(columns.of_examples, (s, c, omega)))
    excluded = pool.flat()
    criterion = make_criterion("gradient")
    _fit_intercept(ball, target, loss)
    for number in range(1, settings.rounds + 1):
        begun = time.perf_counter()
        residual = columns.each(_residual, loss, *target, ball.products, ball.intercept)
        support = np.array(ball.support, np.int64)
        state = SearchState(columns.each(_as_column, residual), number, support)
        winners = settings.search.best(pool, state, criterion, excluded)
        if not winners:
            return
        feature = int(winners[0].features[0])
        new = feature not in ball.support
        if new and settings.max_features is not None and len(support) >= settings.max_features:
            return
        column = columns.each(_first, columns.columns_of(winners[0].features))
        gradient = float(columns.total(np.dot, column, residual))
        vertex = -float(np.sign(gradient)) * bound
        direction = columns.each(_direction, column, vertex, ball.products)
        value = columns.total(_value, loss, *target, ball.products, ball.intercept)
        gap = -float(columns.total(np.dot, direction, residual))
        if gap <= settings.tol * max(abs(value), 1e-12):
            return
        bend = loss.curvature * columns.total(_square, target.omega, direction)
        step = min(1.0, gap / bend)
        ball.move(feature, column, vertex, step)
        _fit_intercept(ball, target, loss)
        yield Round(
            number=number,
            entered=winners[0].features[: int(new)],
            candidates=np.array(ball.support, np.int64),
            coef=np.array([ball.weights]),
            intercept=np.array([ball.intercept]),
            score=gap,
            loss=columns.total(_value, loss, *target, ball.products, ball.intercept),
            gap=gap,
            step=step,
            seconds=time.perf_counter() - begun,
        )


class _Target(NamedTuple):
    """s, c and the weights of the examples, where these are."""

    s: Any
    c: Any
    omega: Any


def _slacks(s: np.ndarray, c: np.ndarray, products: np.ndarray, b: float) -> np.ndarray:
    return np.asarray(c - s * (products + b))


def _residual(
    loss: TaskLoss, s: np.ndarray, c: np.ndarray, omega: np.ndarray, products: np.ndarray, b: float
) -> np.ndarray:
    return np.asarray(-s * loss.derivative(_slacks(s, c, products, b)) * omega)


def _value(
    loss: TaskLoss, s: np.ndarray, c: np.ndarray, omega: np.ndarray, products: np.ndarray, b: float
) -> float:
    return float(np.dot(omega, loss.value(_slacks(s, c, products, b))))


def _slope(
    loss: TaskLoss, s: np.ndarray, c: np.ndarray, omega: np.ndarray, products: np.ndarray, b: float
) -> float:
    return float(np.dot(omega, -s * loss.derivative(_slacks(s, c, products, b))))


def _as_column(values: np.ndarray) -> np.ndarray:
    return values[:, None]


def _first(columns: np.ndarray) -> np.ndarray:
    return columns[0].astype(np.float64)


def _direction(column: np.ndarray, vertex: float, products: np.ndarray) -> np.ndarray:
    return np.asarray(vertex * column - products)


def _square(omega: np.ndarray, direction: np.ndarray) -> float:
    return float(np.dot(omega, direction**2))


def _fit_intercept(ball: Ball, target: _Target, loss: TaskLoss) -> None:
    """Set the intercept where the loss's derivative in it is zero."""
    from scipy.optimize import brentq

    def slope(b: float) -> float:
        return ball.columns.total(_slope, loss, *target, ball.products, b)

    low = ball.intercept - 1.0
    high = ball.intercept + 1.0
    for _ in range(60):
        if slope(low) <= 0 <= slope(high):
            break
        low, high = low - (slope(low) > 0) * (high - low), high + (slope(high) < 0) * (high - low)
    if slope(ball.intercept) != 0:
        ball.intercept = float(brentq(slope, low, high, xtol=1e-13, rtol=1e-13))
