"""Forward greedy selection within an ℓ1 ball: a Frank–Wolfe step towards one feature a round.

Within O(λ²B²/ε²) features the risk is within ε of the best weights in the ball, whatever their
number.

S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from scripts.reproduce.smoothed import LOSSES, Smoothed


@dataclass(frozen=True)
class Step:
    """Features in the order of their entry, their weights (‖w‖₁ ≤ B), and how far it is."""

    support: np.ndarray
    weights: np.ndarray
    intercept: float
    loss: float
    gap: float
    step: float


def forward_greedy(
    X: np.ndarray,
    y: np.ndarray,
    bound: float,
    loss: str = "hinge",
    eps: float = 0.1,
    rounds: int = 500,
    max_features: int | None = None,
    tol: float = 1e-3,
) -> Iterator[Step]:
    """Yield steps w ← (1 − η)w + ηB·sign(−g_j)e_j with j = argmax |g_j|.

    X is in [−1, 1]; y is ±1, or numbers for the loss "absolute".
    """
    # η minimizes the quadratic that bounds the smooth loss from above along the step, clipped to
    # [0, 1]. The intercept is refitted after each step: it is outside the ball.
    X = X.astype(np.float64)
    smooth = Smoothed(LOSSES[loss](), eps)
    s, c = (np.ones(len(y)), y) if loss == "absolute" else (y, np.ones(len(y)))
    w = np.zeros(X.shape[1])
    support: list[int] = []
    b = _intercept(smooth, s, c, X @ w, 0.0)
    for _ in range(rounds):
        # 1) the column of the largest gradient
        products = X @ w
        slopes = -s * smooth.derivative(c - s * (products + b)) / len(y)
        gradient = X.T @ slopes
        j = int(np.argmax(np.abs(gradient)))
        if max_features is not None and j not in support and len(support) >= max_features:
            return
        # 2) the duality gap; stop?
        vertex = -float(np.sign(gradient[j])) * bound
        direction = vertex * X[:, j] - products
        gap = -float(direction @ slopes)
        value = float(np.mean(smooth.value(c - s * (products + b))))
        if gap <= tol * max(abs(value), 1e-12):
            return
        # 3) the step
        step = min(1.0, gap / (smooth.curvature * float(np.mean(direction**2))))
        w = (1 - step) * w
        w[j] += step * vertex
        support += [] if j in support else [j]
        b = _intercept(smooth, s, c, X @ w, b)
        value = float(np.mean(smooth.value(c - s * (X @ w + b))))
        yield Step(np.array(support), w[support], b, value, gap, step)


def _intercept(
    loss: Smoothed, s: np.ndarray, c: np.ndarray, products: np.ndarray, start: float
) -> float:
    """Return where the loss's derivative in the intercept is zero."""

    def slope(b: float) -> float:
        return float(np.mean(-s * loss.derivative(c - s * (products + b))))

    low, high = start - 1.0, start + 1.0
    for _ in range(60):
        if slope(low) <= 0 <= slope(high):
            break
        width = high - low
        low, high = low - (slope(low) > 0) * width, high + (slope(high) < 0) * width
    return start if slope(start) == 0 else float(brentq(slope, low, high, xtol=1e-13, rtol=1e-13))
