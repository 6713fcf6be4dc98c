"""Targets as tasks: one task a class, a label or a column of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.learners.examples import class_signs
from visionshare.solvers import TaskTargets


@dataclass(frozen=True)
class Targets:
    """The tasks of some examples, and which of these have a weight above 0."""

    tasks: TaskTargets
    order: np.ndarray
    # Class of each example in ``order``, where one loss couples the scores of all classes.
    classes: np.ndarray | None = None


@dataclass(frozen=True)
class TargetsOf:
    """What is known of each example, and the function that makes targets of it, wherever it is."""

    make: Callable[..., Targets]
    examples: tuple[Any, ...]
    n_tasks: int
    coupled: bool = False


def class_targets(y: np.ndarray, omega: np.ndarray, n_classes: int) -> Targets:
    """Return one task a class (one for two classes)."""
    signs = class_signs(y, n_classes)
    return _targets(signs, np.ones_like(signs), omega)


def coupled_targets(y: np.ndarray, omega: np.ndarray, n_classes: int) -> Targets:
    """Return one task a class, whose slacks are the scores: the loss knows the classes."""
    shape = (len(y), n_classes)
    targets = _targets(np.full(shape, -1.0), np.zeros(shape), omega)
    return Targets(targets.tasks, targets.order, y[targets.order])


def label_targets(signs: np.ndarray, omega: np.ndarray) -> Targets:
    """Return one task a label, for signs (m, L) and weights (m,) or (m, L)."""
    return _targets(signs, np.ones_like(signs), omega)


def number_targets(y: np.ndarray, omega: np.ndarray) -> Targets:
    """Return one task a column of y (m, T), for weights (m,), or (m, T) where entries miss."""
    return _targets(np.ones_like(y), y, omega)


def _targets(s: np.ndarray, c: np.ndarray, omega: np.ndarray) -> Targets:
    order = np.flatnonzero(omega > 0 if omega.ndim == 1 else omega.any(axis=1))
    return Targets(TaskTargets(s[order], c[order], omega[order]), order)
