"""The multinomial loss as a loss of tasks: one score a class, coupled by the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.losses.multiclass import MulticlassLogistic


@dataclass(frozen=True)
class Multinomial:
    """ln Σ_c exp(z_c − z_y), for slacks that are the scores themselves (s = −1, c = 0).

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        Class of each example of the one block of tasks.

    Examples
    --------
    >>> import numpy as np
    >>> Multinomial(np.array([2])).derivative(np.zeros((1, 4))).tolist()
    [[0.25, 0.25, -0.75, 0.25]]
    """

    y: np.ndarray
    curvature: ClassVar[float] = 0.5
    template: ClassVar[float] = 0.5

    def importance(self, z: np.ndarray) -> np.ndarray:
        """Return the probabilities; at the true class, that of all others."""
        return np.abs(self.derivative(z))

    def value(self, z: np.ndarray) -> np.ndarray:
        return MulticlassLogistic(0.0).losses(np.ascontiguousarray(z.T), self.y)[:, None]

    def derivative(self, z: np.ndarray) -> np.ndarray:
        ones = np.ones(len(z))
        return MulticlassLogistic(0.0).residual(np.ascontiguousarray(z.T), self.y, ones)[1].T

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        P = MulticlassLogistic(0.0).curvature(np.ascontiguousarray(z.T), self.y).T
        return np.asarray(P * (1 - P))

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Refuse: the loss has no proximal operator in closed form."""
        raise InputError("solver", "'admm' with the multinomial loss", "'fista' or 'gradboost'")
