"""The problem of tasks whose examples lie in partitions: sums and weights travel alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from visionshare.distributed.engine import Engine, PartitionedRows
from visionshare.distributed.host import THREADS
from visionshare.errors import InputError
from visionshare.solvers import TaskBlock, TaskProblem, TaskWeights

__all__ = ["PartitionedTasks"]

T = TypeVar("T")


def _staying_of_block(function: Callable[..., Any]) -> Any:
    """Return a method whose first argument, a block, is that of each partition."""

    def method(self: Any, block: TaskBlock, *args: Any) -> PartitionedRows:
        return self._engine.rows(_of_block, self._local, function, *args)

    return method


def _summed_of_block(function: Callable[..., Any]) -> Any:
    """Return a method that adds up what a function gives of each partition's block."""

    def method(self: Any, block: TaskBlock, *args: Any) -> Any:
        return self._engine.total(_of_block, self._local, function, *args)

    return method


def _of_block(problem: TaskProblem, function: Callable[..., T], *args: Any) -> T:
    return function(problem, problem.blocks[0], *args)


def _rows_and_sums(problem: TaskProblem) -> tuple[int, np.ndarray]:
    return problem.m, problem.blocks[0].totals


# A partition that is placed anew repeats its orders: none may write over what another has left.
def _shifted(
    problem: TaskProblem, block: TaskBlock, z: np.ndarray, X: np.ndarray, change: np.ndarray
) -> np.ndarray:
    return problem.shifted(block, z.copy(), X, change)


def _raised(problem: TaskProblem, block: TaskBlock, z: np.ndarray, step: np.ndarray) -> np.ndarray:
    return problem.raised(block, z.copy(), step)


def _loss_value(problem: TaskProblem, *slacks: np.ndarray) -> float:
    return problem.loss_value(slacks)


def _gradient(problem: TaskProblem, *slacks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gradient = problem.gradient(slacks)
    return gradient.W, gradient.b


@dataclass(frozen=True)
class _BlockElsewhere(TaskBlock):
    """Tasks whose examples lie elsewhere: what is left here are sums of their weights."""

    sums: np.ndarray

    @property
    def totals(self) -> np.ndarray:
        return self.sums


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
        block = self.blocks[0]
        empty = (block.s, block.c, block.omega)
        self.blocks = [_BlockElsewhere(block.rows, block.tasks, *empty, sums)]
        self._count = int(count)

    @property
    def n_rows(self) -> int:
        return self._count

    @property
    def columns(self) -> np.ndarray:
        """Raise an InputError: no place has all examples."""
        raise InputError("columns", "partitions", "columns in one place, for this solver")

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        result: T = self._engine.total(function, self._local, *args, how=how)
        return result

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
        ends = np.cumsum(self._sizes)
        parts = [np.arange(ends[g] - self._sizes[g], ends[g]) for g in groups]
        positions = np.concatenate([np.empty(0, np.int64), *parts])
        self._sizes = [self._sizes[g] for g in groups]
        self.n = len(positions)
        self.ids = self.ids[positions]
        self.removals += 1
        self._engine.change(self._local, TaskProblem.keep, groups)
        return positions

    def subset(self, used: Any) -> PartitionedTasks:
        smaller = copy(self)
        smaller._local = self.each(TaskProblem.subset, used)
        smaller._measure()
        return smaller

    forward = _staying_of_block(TaskProblem.forward)
    slack = _staying_of_block(TaskProblem.slack)
    residual = _staying_of_block(TaskProblem.residual)
    importance = _staying_of_block(TaskProblem.importance)
    row_values = _staying_of_block(TaskProblem.row_values)
    shifted = _staying_of_block(_shifted)
    raised = _staying_of_block(_raised)
    backward = _summed_of_block(TaskProblem.backward)
    row_sums = _summed_of_block(TaskProblem.row_sums)
    intercept_sums = _summed_of_block(TaskProblem.intercept_sums)
    curvature_grams = _summed_of_block(TaskProblem.curvature_grams)

    def loss_value(self, slacks: Sequence[Any]) -> float:
        return self.total(_loss_value, *slacks)

    def gradient(self, slacks: Sequence[Any]) -> TaskWeights:
        W, b = self.total(_gradient, *slacks)
        return TaskWeights(W, W.sum(axis=1), b)

    def mean_squares(self, i: int) -> np.ndarray:
        return self.total(TaskProblem.mean_squares, i) if self.n else super().mean_squares(i)
