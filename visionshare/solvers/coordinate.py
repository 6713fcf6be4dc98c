"""Coordinate steps for the tasks' master problem: one feature at a time, as boosting does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from visionshare.errors import InputError
from visionshare.losses.separable import Logistic
from visionshare.solvers.row_updates import exponential_l1, exponential_max
from visionshare.solvers.tasks import TaskBlock, TaskProblem, TaskSolution, TaskWeights

__all__ = ["AdaBoost", "GradBoost"]


class _Coordinates:
    """Sweeps over the features; a subclass says what one feature's new weights are."""

    def __init__(self, problem: TaskProblem) -> None:
        self.problem = problem
        if problem.sharing:
            raise InputError("shared_strength", problem.shared_strength, "None, for this master")

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        """Return weights whose KKT residual is at most ``tol``.

        Parameters
        ----------
        start : TaskWeights
        tol : float
        max_iter : int
            Sweeps at most.
        """
        problem = self.problem
        W, b = start.W.copy(), start.b.copy()
        slacks = [problem.slack(block, start) for block in problem.blocks]
        for sweep in range(max_iter + 1):
            weights = TaskWeights(W, start.shared, b)
            kkt = problem.kkt(weights, problem.gradient(slacks))
            if kkt <= tol or sweep == max_iter:
                value = problem.loss_value(slacks) + problem.penalty(weights)
                return TaskSolution(weights, value, kkt, sweep, kkt <= tol)
            for block, z in zip(problem.blocks, slacks, strict=True):
                step = self._intercepts(block, z)
                b[block.tasks] += step
                z -= block.s * step
            W = W.copy()
            ends = np.append(problem.starts, problem.n)
            for first, last in pairwise(ends):
                self._move(W, slacks, slice(int(first), int(last)))
        raise AssertionError("the last sweep returns")

    def _move(self, W: np.ndarray, slacks: list[np.ndarray], rows: slice) -> None:
        """Change the weights of one group, and the slacks with them."""
        new = self._group(W[rows], slacks, rows)
        change = new - W[rows]
        if not change.any():
            return
        W[rows] = new
        for block, z in zip(self.problem.blocks, slacks, strict=True):
            X = self.problem.columns[rows, block.rows].astype(np.float64)
            z -= block.s * (X.T @ change[:, block.tasks])

    def _intercepts(self, block: TaskBlock, z: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _group(self, w: np.ndarray, slacks: list[np.ndarray], rows: slice) -> np.ndarray:
        raise NotImplementedError


class GradBoost(_Coordinates):
    """A proximal gradient step a feature, of the length that its own squares allow.

    With L = c Σ_i ω_i x_i² for the loss's largest curvature c, the new weights are the proximal
    operator of λ/L at w − g/L: for the logistic loss the paper's w − 4ag with a = 1/Σx², for the
    multinomial loss w − 2ag.

    Parameters
    ----------
    problem : TaskProblem
        Without shared weights.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §4 and §5.
    """

    def _intercepts(self, block: TaskBlock, z: np.ndarray) -> np.ndarray:
        problem = self.problem
        bend = problem.loss.curvature * block.omega.sum()
        return np.asarray(-problem.residual(block, z).sum(axis=0) / bend)

    def _group(self, w: np.ndarray, slacks: list[np.ndarray], rows: slice) -> np.ndarray:
        problem = self.problem
        gradient, square = np.zeros_like(w), 0.0
        for block, z in zip(problem.blocks, slacks, strict=True):
            X = problem.columns[rows, block.rows].astype(np.float64)
            gradient[:, block.tasks] = X @ problem.residual(block, z)
            square = max(square, float(np.sum(X * X @ block.omega)))
        if square == 0:
            return w
        bend = problem.loss.curvature * square
        # One group: it begins at its own first row.
        return problem.norm.prox(
            w - gradient / bend, np.zeros(1, np.int64), problem.strength / bend
        )


class AdaBoost(_Coordinates):
    """An exponential bound on the logistic loss, minimised feature by feature with its norm.

    Parameters
    ----------
    problem : TaskProblem
        Logistic loss, no shared weights, q = 1 or infinity, and groups of one column.

    Raises
    ------
    InputError
        If the problem is another.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §3 and §5.
    """

    def __init__(self, problem: TaskProblem) -> None:
        super().__init__(problem)
        if not isinstance(problem.loss, Logistic):
            raise InputError("loss", type(problem.loss).__name__, "'logistic', for AdaBoost")
        if problem.norm.q not in (1, np.inf):
            raise InputError("q", problem.norm.q, "1 or infinity, for AdaBoost")

    def _sums(
        self, block: TaskBlock, z: np.ndarray, x: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return μ⁺ and μ⁻ of each task of a block: importance where s·x is above and below 0."""
        importance = self.problem.loss.derivative(z) * block.omega[:, None]
        signed = importance * block.s * x[:, None]
        return np.maximum(signed, 0).sum(axis=0), np.maximum(-signed, 0).sum(axis=0)

    def _intercepts(self, block: TaskBlock, z: np.ndarray) -> np.ndarray:
        up, down = self._sums(block, z, np.ones(len(z)))
        tiny = 1e-300
        step = 0.5 * np.log(np.maximum(up, tiny) / np.maximum(down, tiny))
        return np.clip(step, -5, 5)

    def _group(self, w: np.ndarray, slacks: list[np.ndarray], rows: slice) -> np.ndarray:
        if len(w) != 1:
            raise InputError("groups", f"{len(w)} columns", "one column each, for AdaBoost")
        problem = self.problem
        up, down = np.zeros(problem.n_tasks), np.zeros(problem.n_tasks)
        x = problem.columns[rows.start].astype(np.float64)
        peak = np.abs(x).max()
        if peak == 0:
            return w
        for block, z in zip(problem.blocks, slacks, strict=True):
            up[block.tasks], down[block.tasks] = self._sums(block, z, x[block.rows])
        if problem.norm.q == 1:
            return w + exponential_l1(w[0], up, down, 1 / peak, problem.strength)
        return exponential_max(w[0], up, down, 1 / peak, problem.strength)[None]
