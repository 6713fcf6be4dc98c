"""FISTA for the tasks' master problem: accelerated proximal gradient."""

from __future__ import annotations

import numpy as np

from visionshare.solvers.tasks import Solver, TaskProblem, TaskSolution, TaskWeights

_CHECK = 10
_LEAST = 1e-6
_MOST = 1e30


class Fista(Solver):
    """Accelerated proximal gradient with a backtracked step and gradient restart.

    Intercepts are scaled as if their column had the mean norm of the others, by the weights of the
    examples. Scores are linear in the weights: an iteration costs one product with the columns
    forward and one back.

    Parameters
    ----------
    problem : TaskProblem
        May gain and lose columns between two calls of :meth:`solve`.
    as_published : bool, default False
        Neither restart nor scaled intercepts, and steps that never become longer again, for
        comparisons.

    References
    ----------
    A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm", SIAM Journal on
    Imaging Sciences 2, 2009; B. O'Donoghue, E. Candès, "Adaptive restart for accelerated gradient
    schemes", Foundations of Computational Mathematics 15, 2015.
    """

    def __init__(self, problem: TaskProblem, as_published: bool = False) -> None:
        self.problem = problem
        self.as_published = as_published
        # Where the curvature has no bound, backtracking finds the step.
        curvature = problem.loss.curvature
        self._first = curvature if np.isfinite(curvature) else 1.0
        self._lipschitz = self._first
        self._b_scale = np.ones(problem.n_tasks)

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        problem = self.problem
        if not self.as_published:
            # An example of weight 2 bends both parts as two examples do.
            totals = problem.targets.totals
            scale2 = problem.mean_squares() / np.where(totals > 0, totals, 1)
            self._b_scale = np.sqrt(np.where(scale2 > 0, scale2, 1))
        x = start
        zx = problem.slack(start)
        y = x
        zy = zx
        momentum = 1.0
        for iteration in range(1, max_iter + 1):
            gradient = problem.gradient(zy)
            if y is x and problem.kkt(x, gradient) <= tol:
                return self._solution(x, zx, gradient, iteration, True)
            new, z_new = self._step(y, zy, gradient)
            uphill = not self.as_published and _inner(_minus(y, new), _minus(new, x)) > 0
            following = 0.5 * (1 + np.sqrt(1 + 4 * momentum * momentum))
            ahead = 0.0 if uphill else (momentum - 1) / following
            momentum = 1.0 if uphill else following
            if iteration % _CHECK == 0:
                gradient = problem.gradient(z_new)
                if problem.kkt(new, gradient) <= tol:
                    return self._solution(new, z_new, gradient, iteration, True)
            y = new if ahead == 0 else _ahead(new, x, ahead)
            zy = z_new + ahead * (z_new - zx)
            x = new
            zx = z_new
        return self._solution(x, zx, problem.gradient(zx), max_iter, False)

    def _solution(
        self,
        weights: TaskWeights,
        z: np.ndarray,
        gradient: TaskWeights,
        iterations: int,
        converged: bool,
    ) -> TaskSolution:
        value = self.problem.loss_value(z) + self.problem.penalty(weights)
        kkt = self.problem.kkt(weights, gradient)
        return TaskSolution(weights, value, kkt, iterations, converged)

    def _step(
        self, y: TaskWeights, zy: np.ndarray, gradient: TaskWeights
    ) -> tuple[TaskWeights, np.ndarray]:
        problem = self.problem
        value = self.problem.loss_value(zy)
        scale2 = self._b_scale**2
        slack = max(1e-12, 64 * float(np.finfo(problem.dtype).eps))
        if not self.as_published:
            # Where no step is left to make, every bound holds: the estimate must not vanish.
            self._lipschitz = max(0.95 * self._lipschitz, _LEAST * self._first)
        for _ in range(60):
            step = 1 / self._lipschitz
            new = problem.prox(
                TaskWeights(
                    y.W - step * gradient.W,
                    y.shared - step * gradient.shared,
                    y.b - step * scale2 * gradient.b,
                ),
                step,
            )
            z_new = problem.slack(new)
            move = _minus(new, y)
            scaled = TaskWeights(move.W, move.shared, move.b / self._b_scale)
            bound = value + _inner(gradient, move) + 0.5 / step * _inner(scaled, scaled)
            if problem.loss_value(z_new) <= bound + slack * abs(value):
                break
            # Nor may it grow without end, where rounding hides every fall of the loss.
            self._lipschitz = min(1.5 * self._lipschitz, _MOST * self._first)
        return new, z_new


def _minus(x: TaskWeights, y: TaskWeights) -> TaskWeights:
    return TaskWeights(x.W - y.W, x.shared - y.shared, x.b - y.b)


def _ahead(new: TaskWeights, old: TaskWeights, by: float) -> TaskWeights:
    move = _minus(new, old)
    return TaskWeights(new.W + by * move.W, new.shared + by * move.shared, new.b + by * move.b)


def _inner(x: TaskWeights, y: TaskWeights) -> float:
    separate = np.vdot(x.W, y.W) + np.vdot(x.shared, y.shared)
    return float(separate + np.vdot(x.b, y.b))
