"""The record of a round: what every loop leaves, and what a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from visionshare.solvers import TaskWeights

_NAN = float("nan")


def _empty() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True, kw_only=True)
class Round:
    """What a learner is after a round, and what that round was worth."""

    number: int
    entered: np.ndarray
    candidates: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    score: float = _NAN
    value: float = _NAN
    loss: float = _NAN
    train_error: float = _NAN
    validation_error: float = _NAN
    gap: float = _NAN
    step: float = _NAN
    searches: int = 0
    shared: np.ndarray = field(default_factory=_empty)
    left_out: np.ndarray = field(default_factory=_empty)
    moved: np.ndarray = field(default_factory=_empty)
    seconds: float = 0.0

    @property
    def W(self) -> np.ndarray:
        """Intercepts and weights together, (T, n + 1)."""
        return np.column_stack([self.intercept, self.coef])


def task_weights(record: Round) -> TaskWeights:
    """Return a round's weights as solvers of tasks have them: one row a column."""
    return TaskWeights(np.ascontiguousarray(record.coef.T), record.shared, record.intercept)
