"""Blocks of tasks that have the same examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["TaskBlock", "spread_weights"]


@dataclass(frozen=True)
class TaskBlock:
    """Tasks that have the same examples.

    Attributes
    ----------
    rows : slice
        The block's examples among all.
    tasks : ndarray of int, shape (T_b,)
        Its tasks among all: columns of W.
    s, c : ndarray of shape (n, T_b), float64
        z = c − s·f for scores f; see :mod:`visionshare.losses.separable`.
    omega : ndarray of shape (n,) or (n, T_b), float64
        Weights of the examples, above 0; or of each example in each task, at least 0: where it is
        0, the example's target is missing in that task.
    """

    rows: slice
    tasks: np.ndarray
    s: np.ndarray
    c: np.ndarray
    omega: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """Weights that broadcast over the tasks, (n, 1) or (n, T_b)."""
        return self.omega if self.omega.ndim == 2 else self.omega[:, None]

    @property
    def totals(self) -> np.ndarray:
        """Sum of the weights in each task, (T_b,)."""
        return np.broadcast_to(self.weights.sum(axis=0), self.tasks.shape)


def spread_weights(block: TaskBlock, rows: slice | np.ndarray, m: int) -> np.ndarray:
    """Return a block's weights among m examples, (1, m), or (T_b, m) where tasks differ.

    Parameters
    ----------
    block : TaskBlock
    rows : slice or ndarray of int
        The block's examples among the m; others get weight 0.
    m : int
    """
    spread = np.zeros((block.weights.shape[1], m))
    spread[:, rows] = block.weights.T
    return spread
