"""The problem of tasks whose examples lie in partitions: sums and weights travel alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from visionshare.distributed.engine import Engine, staying, summed
from visionshare.distributed.host import THREADS
from visionshare.errors import InputError
from visionshare.solvers import TaskProblem, TaskTargets, TaskWeights

T = TypeVar("T")


@dataclass(frozen=True)
class _TargetsElsewhere(TaskTargets):
    """Targets whose examples lie elsewhere: what is left here are sums of their weights."""

    sums: np.ndarray

    @property
    def totals(self) -> np.ndarray:
        return self.sums


def _rows_and_sums(problem: TaskProblem) -> tuple[int, np.ndarray]:
    return problem.m, problem.targets.totals


# A partition that is placed anew repeats its orders: none may write over what another has left.
def _shifted(problem: TaskProblem, z: np.ndarray, X: np.ndarray, change: np.ndarray) -> np.ndarray:
    return problem.shifted(z.copy(), X, change)


def _raised(problem: TaskProblem, z: np.ndarray, step: np.ndarray) -> np.ndarray:
    return problem.raised(z.copy(), step)


def _gradient(problem: TaskProblem, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gradient = problem.gradient(z)
    return gradient.W, gradient.b


class PartitionedTasks(TaskProblem):
    """A problem of tasks in each partition, and their sums."""

    def __init__(
        self, engine: Engine, make: Callable[..., TaskProblem], examples: Sequence[np.ndarray]
    ) -> None:
        # What does not depend on the examples is here, in a problem of none.
        self.__dict__.update(make(None, *(values[:0] for values in examples)).__dict__)
        omega = examples[-1]
        self._engine = engine
        pieces = [engine.split(values) for values in examples]
        self._local = engine.rows(make, THREADS, *pieces)
        self.order = np.flatnonzero(omega > 0 if omega.ndim == 1 else omega.any(axis=1))
        self._measure()

    def _measure(self) -> None:
        """Learn how many rows the partitions have, and the sums of their weights."""
        count, sums = self.total(_rows_and_sums)
        empty = self.targets
        self.targets = _TargetsElsewhere(empty.s, empty.c, empty.omega, sums)
        self._count = int(count)

    @property
    def n_rows(self) -> int:
        return self._count

    @property
    def columns(self) -> np.ndarray:
        """Raise an InputError: no place has all examples."""
        raise InputError("columns", "partitions", "columns in one place, for this solver")

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        return self._engine.total(function, self._local, *args, how=how)

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._engine.rows(function, self._local, *args)

    def append(
        self, new: Any, sizes: Sequence[int] | None = None, ids: np.ndarray | None = None
    ) -> None:
        g = new.shape[0]
        first = self.n
        self._sizes.extend([g] if sizes is None else sizes)
        self.ids = np.append(self.ids, np.arange(first, first + g) if ids is None else ids)
        self.n += g
        self._engine.change(self._local, TaskProblem.append, new, sizes, ids)

    def keep(self, groups: np.ndarray) -> np.ndarray:
        positions = self._positions(groups)
        self._engine.change(self._local, TaskProblem.keep, groups)
        return positions

    def subset(self, used: Any) -> PartitionedTasks:
        smaller = copy(self)
        smaller._local = self.each(TaskProblem.subset, used)
        smaller._measure()
        return smaller

    forward = staying(TaskProblem.forward)
    slack = staying(TaskProblem.slack)
    residual = staying(TaskProblem.residual)
    importance = staying(TaskProblem.importance)
    row_values = staying(TaskProblem.row_values)
    shifted = staying(_shifted)
    raised = staying(_raised)
    backward = summed(TaskProblem.backward)
    row_sums = summed(TaskProblem.row_sums)
    intercept_gradient = summed(TaskProblem.intercept_gradient)
    intercept_importance = summed(TaskProblem.intercept_importance)
    curvature_grams = summed(TaskProblem.curvature_grams)
    loss_value = summed(TaskProblem.loss_value)
    fenchel_young = summed(TaskProblem.fenchel_young)

    def gradient(self, z: Any) -> TaskWeights:
        W, b = self.total(_gradient, z)
        return TaskWeights(W, W.sum(axis=1), b)

    def mean_squares(self) -> np.ndarray:
        return self.total(TaskProblem.mean_squares) if self.n else super().mean_squares()
