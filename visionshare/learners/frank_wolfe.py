"""Forward greedy selection within an ℓ1 ball: a Frank–Wolfe step a round."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.columns import Columns
from visionshare.learners.rounds import Round
from visionshare.losses import TaskLoss
from visionshare.search import Pool, Search, SearchState, make_criterion

# Makes a column (m, 1) of values (m,).
_AS_COLUMN = operator.itemgetter(np.s_[:, None])


@dataclass(frozen=True)
class BallSettings:
    """The choices of a forward selection within a ball."""

    rounds: int
    max_features: int | None
    bound: float
    loss: TaskLoss
    tol: float
    search: Search


@dataclass(frozen=True)
class _Targets:
    """What some examples are to learn, wherever they are, and the ball's scores of them."""

    loss: TaskLoss
    s: np.ndarray
    c: np.ndarray
    omega: np.ndarray
    products: np.ndarray

    def slacks(self, b: float) -> np.ndarray:
        return self.c - self.s * (self.products + b)

    def residual(self, b: float) -> np.ndarray:
        return -self.s * self.loss.derivative(self.slacks(b)) * self.omega

    def value(self, b: float) -> float:
        return float(np.dot(self.omega, self.loss.value(self.slacks(b))))

    def slope(self, b: float) -> float:
        return float(np.dot(self.omega, -self.s * self.loss.derivative(self.slacks(b))))

    def towards(self, column: np.ndarray, vertex: float) -> np.ndarray:
        """Return the direction of the scores towards a vertex of the ball."""
        return vertex * column - self.products

    def square(self, direction: np.ndarray) -> float:
        return float(np.dot(self.omega, direction**2))

    def moved(self, column: np.ndarray, vertex: float, step: float) -> _Targets:
        products = (1 - step) * self.products + step * vertex * column
        return replace(self, products=np.asarray(products))


class Ball:
    """Weights within the ball: columns used, their weights, the intercept and the scores."""

    def __init__(
        self, columns: Columns, loss: TaskLoss, s: np.ndarray, c: np.ndarray, omega: np.ndarray
    ) -> None:
        # Scores f are in z = c − s·f; the weights of the examples have a sum of 1.
        self.columns = columns
        self.support: list[int] = []
        self.weights: list[float] = []
        self.intercept = 0.0
        given = map(columns.of_examples, (s, c, omega, np.zeros(len(s))))
        self.targets = columns.each(_Targets, loss, *given)

    def move(self, feature: int, column: Any, vertex: float, step: float) -> None:
        """Move to (1 − η) w + η · vertex · e_feature."""
        self.weights = [(1 - step) * w for w in self.weights]
        if feature not in self.support:
            self.support.append(feature)
            self.weights.append(0.0)
        self.weights[self.support.index(feature)] += step * vertex
        self.targets = self.columns.each(_Targets.moved, self.targets, column, vertex, step)

    def value(self) -> float:
        """Return the loss."""
        return self.columns.total(_Targets.value, self.targets, self.intercept)

    def fit_intercept(self) -> None:
        """Set the intercept where the loss's derivative in it is zero."""
        from scipy.optimize import brentq

        def slope(b: float) -> float:
            return self.columns.total(_Targets.slope, self.targets, b)

        low, high = self.intercept - 1.0, self.intercept + 1.0
        for _ in range(60):
            if slope(low) <= 0 <= slope(high):
                break
            width = high - low
            low, high = low - (slope(low) > 0) * width, high + (slope(high) < 0) * width
        if slope(self.intercept) != 0:
            self.intercept = float(brentq(slope, low, high, xtol=1e-13, rtol=1e-13))


def ball_rounds(pool: Pool, ball: Ball, settings: BallSettings) -> Iterator[Round]:
    """Yield steps w ← (1 − η)w + ηB·sign(−g_j)e_j with j = argmax |g_j|."""
    # η minimizes the quadratic that bounds the smooth loss from above along the step, clipped to
    # [0, 1]. The intercept is refitted after each step: it is outside the ball.
    columns = pool.columns
    excluded = pool.flat()
    criterion = make_criterion("gradient")
    ball.fit_intercept()
    for number in range(1, settings.rounds + 1):
        begun = time.perf_counter()
        # 1) the column of the largest gradient
        residual = columns.each(_Targets.residual, ball.targets, ball.intercept)
        support = np.array(ball.support, np.int64)
        state = SearchState(columns.each(_AS_COLUMN, residual), number, support)
        winners = settings.search.best(pool, state, criterion, excluded)
        if not winners:
            return
        feature = int(winners[0].features[0])
        new = feature not in ball.support
        if new and settings.max_features is not None and len(support) >= settings.max_features:
            return
        # 2) the duality gap; stop?
        column = columns.each(_first, columns.columns_of(winners[0].features))
        gradient = float(columns.total(np.dot, column, residual))
        vertex = -float(np.sign(gradient)) * settings.bound
        direction = columns.each(_Targets.towards, ball.targets, column, vertex)
        gap = -float(columns.total(np.dot, direction, residual))
        if gap <= settings.tol * max(abs(ball.value()), 1e-12):
            return
        # 3) the step
        bend = settings.loss.curvature * columns.total(_Targets.square, ball.targets, direction)
        step = min(1.0, gap / bend)
        ball.move(feature, column, vertex, step)
        ball.fit_intercept()
        yield Round(
            number=number,
            entered=winners[0].features[: int(new)],
            candidates=np.array(ball.support, np.int64),
            coef=np.array([ball.weights]),
            intercept=np.array([ball.intercept]),
            score=gap,
            loss=ball.value(),
            gap=gap,
            step=step,
            seconds=time.perf_counter() - begun,
        )


def _first(columns: np.ndarray) -> np.ndarray:
    return columns[0].astype(np.float64)


def scores_of(intercept: np.ndarray, *targets: _Targets) -> np.ndarray:
    """Return scores (m, T) of examples in the balls of several tasks."""
    return np.column_stack([one.products for one in targets]) + intercept
