"""Targets as tasks: one task a class, a target or a group of examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.learners.examples import class_signs
from visionshare.solvers import TaskBlock

__all__ = [
    "Targets",
    "TargetsOf",
    "class_targets",
    "coupled_targets",
    "label_targets",
    "number_targets",
]


@dataclass(frozen=True)
class Targets:
    """Blocks of tasks, and where their rows are among all examples."""

    blocks: list[TaskBlock]
    order: np.ndarray
    n_tasks: int
    classes: np.ndarray | None = None


@dataclass(frozen=True)
class TargetsOf:
    """What is known of each example, and the function that makes targets of it."""

    make: Callable[..., Targets]
    examples: tuple[Any, ...]
    n_tasks: int
    coupled: bool = False


def class_targets(
    y: np.ndarray,
    omega: np.ndarray,
    n_classes: int,
    task_of: np.ndarray | None = None,
    n_tasks: int = 0,
) -> Targets:
    """Return one task a class (one for two classes), or one a group of examples."""
    if task_of is not None:
        signs = 2.0 * y[:, None] - 1
        return _of_groups(signs, np.ones_like(signs), omega, task_of, n_tasks)
    signs = class_signs(y, n_classes)
    return _of_all(signs, np.ones_like(signs), omega)


def coupled_targets(y: np.ndarray, omega: np.ndarray, n_classes: int) -> Targets:
    """Return one task a class, whose slacks are the scores: the loss knows the classes."""
    shape = (len(y), n_classes)
    targets = _of_all(np.full(shape, -1.0), np.zeros(shape), omega)
    return Targets(targets.blocks, targets.order, n_classes, y[targets.order])


def label_targets(signs: np.ndarray, omega: np.ndarray) -> Targets:
    """Return one task a label, for signs (m, L) and weights (m,) or (m, L)."""
    return _of_all(signs, np.ones_like(signs), omega)


def number_targets(
    y: np.ndarray, omega: np.ndarray, task_of: np.ndarray | None = None, n_tasks: int = 0
) -> Targets:
    """Return one task a column of y (m, T), or one a group of examples of y (m, 1)."""
    # Weights are (m,), or (m, T) where entries of y are missing.
    if task_of is None:
        return _of_all(np.ones_like(y), y, omega)
    if y.shape[1] != 1:
        raise InputError("y", y.shape, "one number per example, where tasks are given")
    return _of_groups(np.ones_like(y), y, omega, task_of, n_tasks)


def _of_all(s: np.ndarray, c: np.ndarray, omega: np.ndarray) -> Targets:
    order = np.flatnonzero(omega > 0 if omega.ndim == 1 else omega.any(axis=1))
    tasks = np.arange(s.shape[1])
    block = TaskBlock(slice(0, len(order)), tasks, s[order], c[order], omega[order])
    return Targets([block], order, len(tasks))


def _of_groups(
    s: np.ndarray, c: np.ndarray, omega: np.ndarray, task_of: np.ndarray, n_tasks: int
) -> Targets:
    blocks, orders, start = [], [], 0
    for t in range(n_tasks):
        rows = np.flatnonzero((task_of == t) & (omega > 0))
        if len(rows) == 0:
            raise InputError("tasks", f"task {t} without examples", "examples of weight above 0")
        part = slice(start, start + len(rows))
        blocks.append(TaskBlock(part, np.array([t]), s[rows], c[rows], omega[rows]))
        orders.append(rows)
        start = part.stop
    return Targets(blocks, np.concatenate(orders), n_tasks)
