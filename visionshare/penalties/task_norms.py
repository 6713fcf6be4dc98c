"""Norms that leave tasks apart: of each feature in each task, and of all weights of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from visionshare.penalties.norms import GroupNorm

__all__ = ["EuclideanNorm", "TaskGroupNorm"]

_ITERATIONS = 100


@dataclass(frozen=True)
class TaskGroupNorm:
    """Ω(W) = Σ_t Σ_J ‖W_Jt‖_q: a group has a norm in each task, and tasks share nothing by it.

    Parameters
    ----------
    inner_q : float, default 2.0
        q, above 1; for 1 it is :class:`GroupNorm` of 1.

    Examples
    --------
    >>> W, starts = np.array([[3.0, 0.0], [4.0, 2.0]]), np.array([0])
    >>> TaskGroupNorm().value(W, starts), GroupNorm(2).value(W, starts) < 7
    (7.0, True)
    """

    q: ClassVar[float] = float("nan")
    separable: ClassVar[bool] = True
    inner_q: float = 2.0

    def __post_init__(self) -> None:
        GroupNorm(self.inner_q)

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return Σ_t ‖W_Jt‖_q of each group."""
        inner = GroupNorm(self.inner_q)
        return np.sum([inner.norms(column[:, None], starts) for column in W.T], axis=0)

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return max_t ‖G_Jt‖_{q'}: a group stays at 0 while that is at most λ."""
        inner = GroupNorm(self.inner_q)
        return np.max([inner.dual_norms(column[:, None], starts) for column in G.T], axis=0)

    def least(self, alpha: float) -> float:
        """Return λ."""
        return alpha

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        """Return Ω(W)."""
        return float(self.norms(W, starts).sum()) if len(W) else 0.0

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Return argmin_U step·Ω(U) + ½‖U − W‖²; see :meth:`GroupNorm.prox`."""
        inner = GroupNorm(self.inner_q)
        return np.hstack([inner.prox(column[:, None], starts, step) for column in W.T])

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        """Return |W − prox(W − G)|."""
        return np.abs(W - self.prox(W - G, starts, alpha))


@dataclass(frozen=True)
class EuclideanNorm:
    """Ω(W) = Σ_t ‖w_t‖₂, not squared: all weights of a task shrink together, or are all zero.

    No feature is left out by it: once a task has weights, any candidate with a gradient may enter.
    Solvers that move one feature at a time do not see it; FISTA, ADMM and "newton" do.

    Examples
    --------
    >>> W = np.array([[3.0, 0.3], [4.0, 0.4]])
    >>> EuclideanNorm().value(W, np.array([0, 1]))
    5.5
    >>> EuclideanNorm().prox(W, np.array([0, 1]), 1.0).round(6).tolist()
    [[2.4, 0.0], [3.2, 0.0]]
    """

    q: ClassVar[float] = float("nan")
    separable: ClassVar[bool] = False

    def norms(self, W: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖W_J‖₂ of each group; they do not add up to Ω(W)."""
        return GroupNorm(2).norms(W, starts)

    def dual_norms(self, G: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return ‖G_J‖₂ of each group."""
        return GroupNorm(2).norms(G, starts)

    def least(self, alpha: float) -> float:
        """Return 0: any gradient may move a weight."""
        return 0.0

    def value(self, W: np.ndarray, starts: np.ndarray) -> float:
        """Return Ω(W)."""
        return float(np.linalg.norm(W, axis=0).sum())

    def prox(self, W: np.ndarray, starts: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Return argmin_U Σ_t ‖u_t‖₂ + ½ Σ_j ‖U_j − W_j‖² / step_j.

        With one step for all rows, w_t shrinks by it. Otherwise u_j = w_j ν / (ν + step_j), where
        ν = ‖u‖₂ solves Σ_j (w_j / (ν + step_j))² = 1, found by Newton steps from below: the sum
        is convex and falls.
        """
        if len(W) == 0:
            return W.copy()
        steps = np.broadcast_to(np.asarray(step, np.float64), len(W))[:, None]
        if steps.max() <= 0:
            return W.copy()
        if steps.min() == steps.max():
            lengths = np.linalg.norm(W, axis=0)
            return W * np.maximum(1 - steps[0] / np.where(lengths > 0, lengths, 1), 0)
        alive = np.sum((W / steps) ** 2, axis=0) > 1
        length = np.zeros(W.shape[1])
        for _ in range(_ITERATIONS):
            ratio = W / (length + steps)
            excess = np.where(alive, np.sum(ratio**2, axis=0) - 1, 0)
            slope = 2 * np.sum(ratio**2 / (length + steps), axis=0)
            move = excess / np.where(alive, slope, 1)
            length = length + move
            if np.all(move <= 1e-15 * length):
                break
        return W * (length / (length + steps))

    def distance(
        self, W: np.ndarray, G: np.ndarray, starts: np.ndarray, alpha: float
    ) -> np.ndarray:
        """Return |W − prox(W − G)|."""
        return np.abs(W - self.prox(W - G, starts, alpha))
