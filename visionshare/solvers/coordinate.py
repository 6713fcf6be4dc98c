"""Coordinate steps for the restricted master problem of tasks, feature by feature."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.solvers.bounds import BOUNDS, MovingRows, RowBound
from visionshare.solvers.tasks import (
    StepSolver,
    TaskProblem,
    TaskSolution,
    TaskWeights,
)

# Where the only group of rows that move together begins among them.
_START = np.zeros(1, np.int64)


class _Coordinates(StepSolver):
    """Sweeps over the features, each minimizing a bound on the loss together with the penalty."""

    bound_name: ClassVar[str]

    def __init__(self, problem: TaskProblem) -> None:
        self.problem = problem
        if problem.sharing:
            raise InputError("shared_alpha", problem.shared_alpha, "None, for this solver")
        self.bound: RowBound = BOUNDS[self.bound_name](problem)

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        problem = self.problem
        parts = [self._part(group) for group in range(len(problem.starts))]
        W = start.W.copy()
        b = start.b.copy()
        z = problem.slack(start)
        for sweep in range(max_iter + 1):
            weights = TaskWeights(W, start.shared, b)
            gradient = problem.gradient(z)
            kkt = problem.kkt(weights, gradient)
            if kkt <= tol or sweep == max_iter:
                value = problem.loss_value(z) + problem.penalty(weights)
                return TaskSolution(weights, value, kkt, sweep, kkt <= tol)
            W = W.copy()
            b = b.copy()
            z = self._moved_intercepts(b, z, gradient.b)
            for part in parts:
                z = self._moved(W, z, part)
        raise AssertionError("the last sweep returns")

    def step(self, start: TaskWeights, group: int) -> TaskSolution:
        problem = self.problem
        W = start.W.copy()
        b = start.b.copy()
        z = problem.slack(start)
        z = self._moved_intercepts(b, z, problem.intercept_gradient(z))
        z = self._moved(W, z, self._part(group))
        weights = TaskWeights(W, start.shared, b)
        value = problem.loss_value(z) + problem.penalty(weights)
        kkt = problem.kkt(weights, problem.gradient(z))
        return TaskSolution(weights, value, kkt, 1, False)

    def _part(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a group, which move together, and how far they may go."""
        ends = np.append(self.problem.starts, self.problem.n)
        rows = np.arange(ends[group], ends[group + 1])
        measure = self.problem.total(_measured, self.bound, rows, how=self.bound.how)
        return rows, self.bound.sized(measure, _START)

    def _moved(
        self, W: np.ndarray, z: np.ndarray, part: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """Change the weights of some rows; return the slacks."""
        problem = self.problem
        rows, size = part
        w = W[rows]
        X = problem.row_values(rows)
        gradient, total = problem.row_sums(z, X, self.bound.weighs)
        new = self.bound.minimize(MovingRows(w, gradient, total, size, _START))
        change = new - w
        if not change.any():
            return z
        W[rows] = new
        return problem.shifted(z, X, change)

    def _moved_intercepts(self, b: np.ndarray, z: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Change the intercepts; return the slacks."""
        problem = self.problem
        weighs = self.bound.weighs
        total = problem.intercept_importance(z) if weighs else np.zeros_like(gradient)
        step = self.bound.intercepts(gradient, total, problem.targets.totals)
        b += step
        return problem.raised(z, step)


def _measured(problem: TaskProblem, bound: RowBound, rows: np.ndarray) -> np.ndarray:
    return bound.measure(problem.columns[rows].astype(np.float64), problem.omegas)


class GradBoost(_Coordinates):
    """A proximal gradient step a feature, of the length that its own squares allow.

    With B = c Σ_i ω_i x_i² for the loss's largest curvature c, the new weights are the proximal
    operator of λ/B at w − g/B: for the logistic loss the paper's w − 4ag with a = 1/Σx², for the
    multinomial loss w − 2ag.
    """

    bound_name = "quadratic"


class AdaBoost(_Coordinates):
    """An exponential bound on logistic losses, minimized feature by feature with its norm."""

    bound_name = "exponential"
