"""Forward greedy selection within an ℓ1 ball: a Frank–Wolfe step a round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from visionshare.learners.rounds import Round
from visionshare.losses import TaskLoss
from visionshare.search import Pool, Search, SearchState, make_criterion

__all__ = ["Ball", "BallSettings", "ball_rounds"]


@dataclass(frozen=True)
class BallSettings:
    """The choices of a forward selection within a ball.

    Attributes
    ----------
    rounds : int
        Steps at most.
    max_features : int or None
        Stop before a step would use more columns.
    bound : float
        B: ‖w‖₁ ≤ B.
    loss : TaskLoss
        Smooth.
    tol : float
        Stop when the duality gap is below this fraction of the loss.
    search : Search
    """

    rounds: int
    max_features: int | None
    bound: float
    loss: TaskLoss
    tol: float
    search: Search


class Ball:
    """Weights within the ball: columns used, their weights, the intercept and the scores."""

    def __init__(self, m: int) -> None:
        self.support: list[int] = []
        self.weights: list[float] = []
        self.intercept = 0.0
        self.products = np.zeros(m)

    def move(self, feature: int, column: np.ndarray, vertex: float, step: float) -> None:
        """Move to (1 − η) w + η · vertex · e_feature."""
        self.weights = [(1 - step) * w for w in self.weights]
        if feature not in self.support:
            self.support.append(feature)
            self.weights.append(0.0)
        self.weights[self.support.index(feature)] += step * vertex
        self.products = (1 - step) * self.products + step * vertex * column


def ball_rounds(
    pool: Pool,
    ball: Ball,
    s: np.ndarray,
    c: np.ndarray,
    omega: np.ndarray,
    settings: BallSettings,
) -> Iterator[Round]:
    """Yield steps w ← (1 − η)w + ηB·sign(−g_j)e_j with j = argmax |g_j|.

    η minimizes the quadratic that bounds the smooth loss from above along the step, clipped to
    [0, 1]. The intercept is refitted after each step: it is outside the ball.

    Parameters
    ----------
    pool : Pool
        Of single columns, scaled into [−1, 1].
    ball : Ball
        Where the loop begins and what it changes.
    s, c : ndarray of shape (m,)
        z = c − s·f for scores f, see :mod:`visionshare.losses.separable`.
    omega : ndarray of shape (m,)
        Weights of the examples, of sum 1.
    settings : BallSettings

    Yields
    ------
    Round

    References
    ----------
    S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008.
    """
    loss, bound = settings.loss, settings.bound
    excluded, criterion = pool.flat(), make_criterion("gradient")
    _fit_intercept(ball, s, c, omega, loss)
    for number in range(1, settings.rounds + 1):
        begun = time.perf_counter()
        z = c - s * (ball.products + ball.intercept)
        residual = -s * loss.derivative(z) * omega
        support = np.array(ball.support, np.int64)
        state = SearchState(residual[:, None], number, support)
        winners = settings.search.best(pool, state, criterion, excluded)
        if not winners:
            return
        feature = int(winners[0].features[0])
        new = feature not in ball.support
        if new and settings.max_features is not None and len(support) >= settings.max_features:
            return
        column = pool.columns.columns_of(winners[0].features)[0].astype(np.float64)
        gradient = float(column @ residual)
        direction = -np.sign(gradient) * bound * column - ball.products
        gap = -float(direction @ residual)
        value = float(np.dot(omega, loss.value(z)))
        if gap <= settings.tol * max(abs(value), 1e-12):
            return
        bend = loss.curvature * float(np.dot(omega, direction**2))
        step = min(1.0, gap / bend)
        ball.move(feature, column, -float(np.sign(gradient)) * bound, step)
        _fit_intercept(ball, s, c, omega, loss)
        after = c - s * (ball.products + ball.intercept)
        yield Round(
            number=number,
            entered=winners[0].features[: int(new)],
            candidates=np.array(ball.support, np.int64),
            coef=np.array([ball.weights]),
            intercept=np.array([ball.intercept]),
            score=gap,
            loss=float(np.dot(omega, loss.value(after))),
            gap=gap,
            step=step,
            seconds=time.perf_counter() - begun,
        )


def _fit_intercept(
    ball: Ball, s: np.ndarray, c: np.ndarray, omega: np.ndarray, loss: TaskLoss
) -> None:
    """Set the intercept where the loss's derivative in it is zero."""
    from scipy.optimize import brentq

    def slope(b: float) -> float:
        return float(np.dot(omega, -s * loss.derivative(c - s * (ball.products + b))))

    low, high = ball.intercept - 1.0, ball.intercept + 1.0
    for _ in range(60):
        if slope(low) <= 0 <= slope(high):
            break
        low, high = low - (slope(low) > 0) * (high - low), high + (slope(high) < 0) * (high - low)
    if slope(ball.intercept) != 0:
        ball.intercept = float(brentq(slope, low, high, xtol=1e-13, rtol=1e-13))
