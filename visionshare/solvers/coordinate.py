"""Coordinate steps for the restricted master problem of tasks, feature by feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

__all__ = ["AdaBoost", "GradBoost", "Template"]

Template = str | np.ndarray | Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class _Part:
    """Rows that move together, where their groups begin among them, and how far they may go."""

    rows: np.ndarray
    starts: np.ndarray
    size: np.ndarray


class _Coordinates(StepSolver):
    """Sweeps over the features, each minimizing a bound on the loss together with the penalty."""

    bound_name: ClassVar[str]

    def __init__(self, problem: TaskProblem, template: Template = "single") -> None:
        self.problem = problem
        self.template = template
        if problem.sharing:
            raise InputError("shared_alpha", problem.shared_alpha, "None, for this solver")
        self.bound: RowBound = BOUNDS[self.bound_name](problem)

    def solve(self, start: TaskWeights, tol: float, max_iter: int) -> TaskSolution:
        problem = self.problem
        parts = self._parts()
        W = start.W.copy()
        b = start.b.copy()
        slacks = [problem.slack(block, start) for block in problem.blocks]
        for sweep in range(max_iter + 1):
            weights = TaskWeights(W, start.shared, b)
            kkt = problem.kkt(weights, problem.gradient(slacks))
            if kkt <= tol or sweep == max_iter:
                value = problem.loss_value(slacks) + problem.penalty(weights)
                return TaskSolution(weights, value, kkt, sweep, kkt <= tol)
            W = W.copy()
            b = b.copy()
            self._move_intercepts(b, slacks)
            for part in parts:
                self._move(W, slacks, part)
        raise AssertionError("the last sweep returns")

    def step(self, start: TaskWeights, group: int) -> TaskSolution:
        problem = self.problem
        W = start.W.copy()
        b = start.b.copy()
        slacks = [problem.slack(block, start) for block in problem.blocks]
        self._move_intercepts(b, slacks)
        self._move(W, slacks, self._alone(group))
        weights = TaskWeights(W, start.shared, b)
        value = problem.loss_value(slacks) + problem.penalty(weights)
        kkt = problem.kkt(weights, problem.gradient(slacks))
        return TaskSolution(weights, value, kkt, 1, False)

    def _alone(self, group: int) -> _Part:
        ends = np.append(self.problem.starts, self.problem.n)
        rows = np.arange(ends[group], ends[group + 1])
        starts = np.zeros(1, np.int64)
        measure = self.problem.total(_measured, self.bound, rows, how=self.bound.how)
        return _Part(rows, starts, self.bound.sized(measure, starts))

    def _parts(self) -> list[_Part]:
        problem = self.problem
        if problem.n == 0:
            return []
        if isinstance(self.template, str) and self.template == "single":
            return [self._alone(group) for group in range(len(problem.starts))]
        X = problem.columns.astype(np.float64)
        parts = []
        for shares in self._shares(X):
            group = np.maximum.reduceat(shares, problem.starts) > 0
            sizes = np.diff(np.append(problem.starts, problem.n))
            rows = np.flatnonzero(np.repeat(group, sizes))
            starts = np.cumsum(np.append(0, sizes[group]))[:-1]
            if len(rows) == 0:
                continue
            if len(starts) == 1:
                parts.append(self._alone(int(np.flatnonzero(group)[0])))
                continue
            budget = np.where(shares[rows] > 0, shares[rows], 1.0)
            parts.append(
                _Part(rows, starts, self.bound.size(X[rows], starts, problem.omegas, budget))
            )
        return parts

    def _shares(self, X: np.ndarray) -> np.ndarray:
        """Return the templates of the active columns, (templates, n)."""
        n = len(X)
        template = self.template
        if isinstance(template, str):
            shares = np.ones((1, n))
        elif callable(template):
            shares = np.atleast_2d(np.asarray(template(X), np.float64))
        else:
            stacked = np.atleast_2d(np.asarray(template, np.float64))
            shares = (
                stacked[:, self.problem.ids]
                if stacked.shape[1] > self.problem.ids.max()
                else stacked
            )
        accepted = f"shares of at least 0 of shape (templates, {n}), every column in one of them"
        if shares.ndim != 2 or shares.shape[1] != n:
            raise InputError("template", f"shape {shares.shape}", accepted)
        if not np.isfinite(shares).all() or shares.min() < 0 or not shares.max(axis=0).min() > 0:
            raise InputError("template", "other numbers, or a column in none", accepted)
        return shares

    def _move(self, W: np.ndarray, slacks: list[np.ndarray], part: _Part) -> None:
        """Change the weights of some rows, and the slacks with them."""
        problem = self.problem
        blocks = self.problem.blocks
        w = W[part.rows]
        gradient = np.zeros_like(w)
        total = np.zeros_like(w)
        values = [problem.row_values(block, part.rows) for block in blocks]
        for block, z, X in zip(blocks, slacks, values, strict=True):
            gradient[:, block.tasks], total[:, block.tasks] = problem.row_sums(
                block, z, X, self.bound.weighs
            )
        new = self.bound.minimize(MovingRows(w, gradient, total, part.size, part.starts))
        change = new - w
        if not change.any():
            return
        W[part.rows] = new
        for i, (block, X) in enumerate(zip(blocks, values, strict=True)):
            slacks[i] = problem.shifted(block, slacks[i], X, change[:, block.tasks])

    def _move_intercepts(self, b: np.ndarray, slacks: list[np.ndarray]) -> None:
        problem = self.problem
        for i, block in enumerate(problem.blocks):
            gradient, total = problem.intercept_sums(block, slacks[i], self.bound.weighs)
            step = self.bound.intercepts(gradient, total, block.totals)
            b[block.tasks] += step
            slacks[i] = problem.raised(block, slacks[i], step)


def _measured(problem: TaskProblem, bound: RowBound, rows: np.ndarray) -> np.ndarray:
    return bound.measure(problem.columns[rows].astype(np.float64), problem.omegas)


class GradBoost(_Coordinates):
    """A proximal gradient step a feature, of the length that its own squares allow.

    With B = c Σ_i ω_i x_i² for the loss's largest curvature c, the new weights are the proximal
    operator of λ/B at w − g/B: for the logistic loss the paper's w − 4ag with a = 1/Σx², for the
    multinomial loss w − 2ag.

    Parameters
    ----------
    problem : TaskProblem
        Without shared weights.
    template : "single", "parallel", ndarray or callable, default "single"
        Which features move together, and their shares a_j of the step: each alone, all at once, as
        the rows of an array (templates, d) over all columns say, or those of what a function of the
        active columns (n, m) returns, (templates, n). Shares are brought to the scale that the loss
        allows; a sweep takes one template after the other.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §4 and §5.
    """

    bound_name = "quadratic"


class AdaBoost(_Coordinates):
    """An exponential bound on logistic losses, minimized feature by feature with its norm.

    Parameters
    ----------
    problem : TaskProblem
        Logistic, multinomial or insensitive loss, no shared weights, q = 1 or infinity, and groups
        of one column.
    template : "single", "parallel", ndarray or callable, default "single"
        See :class:`GradBoost`.

    Raises
    ------
    InputError
        If the problem is another.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009, §3 and §5.
    """

    bound_name = "exponential"
