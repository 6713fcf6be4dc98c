"""What tasks learn: the targets of the same examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TaskTargets:
    """Targets and weights of the examples in each task.

    Attributes
    ----------
    s, c : ndarray of shape (m, T), float64
        z = c − s·f for scores f; see :mod:`visionshare.losses.separable`.
    omega : ndarray of shape (m,) or (m, T), float64
        Weights of the examples, above 0; or of each example in each task, at least 0: where it is
        0, the example's target is missing in that task.
    """

    s: np.ndarray
    c: np.ndarray
    omega: np.ndarray

    @property
    def n_tasks(self) -> int:
        """T."""
        return self.s.shape[1]

    @property
    def weights(self) -> np.ndarray:
        """Weights that broadcast over the tasks, (m, 1) or (m, T)."""
        return self.omega if self.omega.ndim == 2 else self.omega[:, None]

    @property
    def totals(self) -> np.ndarray:
        """Sum of the weights in each task, (T,)."""
        return np.broadcast_to(self.weights.sum(axis=0), self.n_tasks)
