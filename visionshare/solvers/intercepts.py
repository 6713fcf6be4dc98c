"""The intercepts that are best alone, before any column has a weight."""

from __future__ import annotations

import numpy as np

from visionshare.solvers.tasks import TaskProblem, TaskWeights

_MOST = 200
_NEAR = 1e-13


def intercepts_alone(problem: TaskProblem) -> TaskWeights:
    """Return weights of no columns and each task's best intercept, for numbers to predict.

    Newton's steps begin at the mean, and halve a bracket around the root of the loss's slope where
    they leave it or gain too little. Solvers find it too, but far targets cost those that know no
    curvature, or only its largest, an iteration for every unit or less.
    """
    total, first = problem.total(_sums, np.zeros(problem.n_tasks))
    mean = first / total
    width = np.sqrt(problem.total(_sums, mean, 2)[1] / total)
    low = mean - width
    high = mean + width
    for _ in range(_MOST):
        below = problem.total(_slopes, low)[0] <= 0
        above = problem.total(_slopes, high)[0] >= 0
        if (below & above).all():
            break
        width = 2 * width + _NEAR * (1 + np.abs(mean))
        low = np.where(below, low, mean - width)
        high = np.where(above, high, mean + width)
    b = mean
    before = np.full(problem.n_tasks, np.inf)
    for _ in range(_MOST):
        slope, bend = problem.total(_slopes, b)
        low = np.where(slope < 0, b, low)
        high = np.where(slope > 0, b, high)
        bent = (bend > 0) & np.isfinite(bend)
        new = b - slope / np.where(bent, bend, 1)
        slow = ~bent | (np.abs(slope) > before / 2) | (new <= low) | (new >= high)
        new = np.where(slope == 0, b, np.where(slow, 0.5 * (low + high), new))
        move = np.abs(new - b)
        b = new
        before = np.abs(slope)
        if (move <= _NEAR * (1 + np.abs(b))).all():
            break
    return TaskWeights(np.zeros((0, problem.n_tasks)), np.zeros(0), b)


def _sums(problem: TaskProblem, centers: np.ndarray, power: int = 1) -> tuple[np.ndarray, ...]:
    """Return each task's sums of weights, and of weighted powers of what is left of targets."""
    targets = problem.targets
    left = (targets.c - centers) ** power
    return np.array(targets.totals), np.sum(targets.weights * left, axis=0)


def _slopes(problem: TaskProblem, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss's slope in each intercept, and how fast it changes."""
    targets = problem.targets
    z = targets.c - targets.s * b
    bends = problem.loss.second_derivative(z) * targets.s**2
    return problem.residual(z).sum(axis=0), np.sum(targets.weights * bends, axis=0)
