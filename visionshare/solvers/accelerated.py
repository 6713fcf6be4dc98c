"""Preconditioned accelerated gradient with adaptive restart, for a smooth loss and penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.solvers.active_set import ActiveSet
from visionshare.solvers.preconditioner import Preconditioner


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped."""

    # Weights (k, n + 1), intercept first, and their tiled scores.
    W: np.ndarray
    Z: np.ndarray
    # Loss plus penalty at the last gradient, and ½ gᵀP⁻¹g there: what a Newton step would gain.
    value: float
    gap: float
    iterations: int
    converged: bool


class _Point(NamedTuple):
    """Weights, intercept first, and their tiled scores, which are linear in them."""

    W: np.ndarray
    Z: Any


def _following(
    new: _Point, last: _Point, G: np.ndarray, momentum: float, scalar: Callable[[float], Any]
) -> tuple[_Point, float]:
    """Return the point of the next gradient, and the momentum that leads to it."""
    change = new.W - last.W
    if float(np.sum(G * change)) > 0:
        # It points uphill: O'Donoghue and Candès' gradient restart.
        grown = 1.0
        ahead = 0.0
    else:
        grown = 0.5 * (1 + np.sqrt(1 + 4 * momentum * momentum))
        ahead = (momentum - 1) / grown
    return _Point(new.W + ahead * change, new.Z + scalar(ahead) * (new.Z - last.Z)), grown


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
    """
    slack = 64 * float(np.finfo(active.dtype).eps)
    scalar = active.dtype.type
    start = np.array(W, np.float64)
    last = here = _Point(start, active.scores(start) if Z is None else Z)
    metric = preconditioner(active, loss, penalty, here.W, here.Z)
    momentum = 1.0
    step = 1.0
    since = 0
    value = np.inf
    gap = np.inf
    gradient: Callable[[], tuple[float, np.ndarray]] = partial(active.gradient, loss, here.Z)
    for iteration in range(1, max_iter + 1):
        value, G = gradient()
        value += penalty.value(here.W[:, 1:])
        G[:, 1:] += penalty.gradient(here.W[:, 1:])
        D = -metric.apply(G)
        slope = float(np.sum(G * D))
        gap = -0.5 * slope
        if gap <= tol * abs(value):
            if metric.whole:
                # The Newton step is at hand, and squares the error that is left.
                here = _Point(here.W + D, here.Z + active.scores(D))
                value -= gap
            return Solution(here.W, here.Z, value, gap, iteration, True)
        Zd = active.scores(D)
        step = min(1.0, 1.25 * step)
        renewed = since + 1 >= refresh or metric.whole
        for _ in range(30):
            new = _Point(here.W + step * D, here.Z + scalar(step) * Zd)
            following, grown = (new, 1.0) if renewed else _following(new, last, G, momentum, scalar)
            # Most steps are taken at once: where the examples are elsewhere, the gradient that
            # is needed then comes with the value.
            reached, gradient = active.value_and_gradient(loss, new.Z, following.Z)
            reached += penalty.value(new.W[:, 1:])
            if reached <= value + 0.5 * step * slope + slack * abs(value):
                break
            step *= 0.5
        since = 0 if renewed else since + 1
        if renewed:
            metric = preconditioner(active, loss, penalty, new.W, new.Z)
        last = new
        here = following
        momentum = grown
    return Solution(last.W, last.Z, value, gap, max_iter, False)
