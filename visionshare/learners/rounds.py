"""The record of a round: what every loop leaves, and what a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from visionshare.solvers import TaskWeights

__all__ = ["Round", "task_weights"]

_NAN = float("nan")


def _empty() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True, kw_only=True)
class Round:
    """What a learner is after a round, and what that round was worth.

    Numbers that a learner does not compute are NaN; arrays that it does not have are empty.

    Attributes
    ----------
    number : int
        From 1; 0 is the start, the intercepts alone.
    entered : ndarray of int64
        The candidates that entered in this round.
    candidates : ndarray of int64
        The active candidates after the round, in order of entry.
    coef : ndarray of shape (T, n), float64
        Weights after the round, of the candidates' columns, scaled; a row for each score.
    intercept : ndarray of shape (T,), float64
    score : float
        The criterion of the first that entered; for a backward step the cost of the next removal.
    value : float
        Objective: loss plus penalties.
    loss : float
    train_error, validation_error : float
    gap : float
        How far the weights are from optimal: a KKT residual, or a duality gap before the round.
    step : float
        Length of the step, from 0 to 1, where a round is one.
    searches : int
        Searches made so far, where some end without a candidate.
    shared : ndarray of shape (n,), float64
        Weights that all tasks share, beside ``coef``.
    left_out : ndarray of shape (m,), float64
        Each example's score from a fit without it.
    moved : ndarray of shape (n_candidates, p), float32
        Parameters of the candidates, where a search moves what it draws.
    seconds : float
    """

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
