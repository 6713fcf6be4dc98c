"""Preconditioned accelerated gradient with adaptive restart, for a smooth loss and penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.solvers.active_set import ActiveSet
from visionshare.solvers.preconditioner import Preconditioner

__all__ = ["Solution", "minimize"]


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped.

    Attributes
    ----------
    W : ndarray of shape (k, n + 1), float64
        Weights, intercept first.
    Z : ndarray
        Tiled scores at W.
    value : float
        Loss plus penalty at the last gradient.
    gap : float
        ½ gᵀP⁻¹g there, the decrease that a Newton step would promise.
    iterations : int
        Gradients computed.
    converged : bool
        Whether the gap fell below the tolerance.
    """

    W: np.ndarray
    Z: np.ndarray
    value: float
    gap: float
    iterations: int
    converged: bool


def minimize(
    active: ActiveSet,
    loss: Loss,
    penalty: Penalty,
    W: np.ndarray,
    tol: float = 1e-6,
    max_iter: int = 200,
    refresh: int = 12,
    Z: np.ndarray | None = None,
    preconditioner: Callable[..., Preconditioner] = Preconditioner,
) -> Solution:
    """Minimize loss plus penalty over the weights of the active set.

    Nesterov's accelerated gradient in the metric of :class:`Preconditioner`, a backtracked
    step, gradient restart, and a fresh metric every ``refresh`` steps. Scores are linear in the
    weights, so a step costs one product with the columns forward and one back, however often
    it backtracks.

    Parameters
    ----------
    active : ActiveSet
    loss : Loss
    penalty : Penalty
        Applied to all weights but the intercepts.
    W : ndarray of shape (k, n + 1)
        Start, intercept first.
    tol : float, default 1e-6
        Stop when the promised decrease ½ gᵀP⁻¹g is below ``tol`` times the objective.
    max_iter : int, default 200
        Gradients at most.
    refresh : int, default 12
        Steps between two metrics.
    Z : ndarray, optional
        Tiled scores at ``W``; may hold a fixed part that no weight here stands for.
    preconditioner : callable, default Preconditioner
        Returns the metric at given weights and scores; called as :class:`Preconditioner`.

    Returns
    -------
    Solution
    """
    slack = 64 * float(np.finfo(active.dtype).eps)
    X = np.array(W, np.float64)
    Zx = active.scores(X) if Z is None else Z
    metric = preconditioner(active, loss, penalty, X, Zx)
    Y, Zy = X, Zx
    momentum, step, since = 1.0, 1.0, 0
    value, gap = np.inf, np.inf
    for iteration in range(1, max_iter + 1):
        value, G = active.gradient(loss, Zy)
        value += penalty.value(Y[:, 1:])
        G[:, 1:] += penalty.gradient(Y[:, 1:])
        D = -metric.apply(G)
        slope = float(np.sum(G * D))
        gap = -0.5 * slope
        if gap <= tol * abs(value):
            if metric.whole:
                # The Newton step is at hand, and squares the error that is left.
                Y, Zy, value = Y + D, Zy + active.scores(D), value - gap
            return Solution(Y, Zy, value, gap, iteration, True)
        Zd = active.scores(D)
        step = min(1.0, 1.25 * step)
        for _ in range(30):
            Z_new, X_new = Zy + active.dtype.type(step) * Zd, Y + step * D
            reached = active.value(loss, Z_new) + penalty.value(X_new[:, 1:])
            if reached <= value + 0.5 * step * slope + slack * abs(value):
                break
            step *= 0.5
        since += 1
        if since >= refresh or metric.whole:
            metric = preconditioner(active, loss, penalty, X_new, Z_new)
            momentum, since = 1.0, 0
            X, Zx, Y, Zy = X_new, Z_new, X_new, Z_new
            continue
        if float(np.sum(G * (X_new - X))) > 0:
            # The momentum points uphill: O'Donoghue and Candès' gradient restart.
            momentum, ahead = 1.0, 0.0
        else:
            following = 0.5 * (1 + np.sqrt(1 + 4 * momentum * momentum))
            momentum, ahead = following, (momentum - 1) / following
        Y = X_new + ahead * (X_new - X)
        Zy = Z_new + active.dtype.type(ahead) * (Z_new - Zx)
        X, Zx = X_new, Z_new
    return Solution(X, Zx, value, gap, max_iter, False)
