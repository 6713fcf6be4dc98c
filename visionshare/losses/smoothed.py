"""A loss made smooth: the best value nearby, at the price of the squared distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError


@dataclass(frozen=True)
class Smoothed:
    """L̃(z) = min_u (λ²/ε)(u − z)² + L(u), for a convex loss with Lipschitz constant λ.

    Within ε/4 below L, and its derivative is (2λ²/ε)-Lipschitz, whatever kinks L has.

    Parameters
    ----------
    loss : TaskLoss
        With ``lipschitz``.
    eps : float
        ε, above 0.

    References
    ----------
    S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare.losses import make_task_loss
    >>> Smoothed(make_task_loss("hinge"), eps=1.0).value(np.array([-1.0, 0.25, 2.0])).tolist()
    [0.0, 0.0625, 1.75]
    """

    loss: Any
    eps: float

    def __post_init__(self) -> None:
        if not hasattr(self.loss, "lipschitz"):
            accepted = "a loss with a Lipschitz constant: hinge, absolute or logistic"
            raise InputError("loss", type(self.loss).__name__, accepted)
        if not 0 < self.eps < np.inf:
            raise InputError("eps", self.eps, "a finite number above 0")

    @property
    def lipschitz(self) -> float:
        """λ: that of the loss."""
        return float(self.loss.lipschitz)

    @property
    def curvature(self) -> float:
        """2λ²/ε."""
        return 2 * self.lipschitz**2 / self.eps

    def _nearest(self, z: np.ndarray) -> np.ndarray:
        """Return the u of the minimum."""
        return self.loss.prox(z, np.asarray(1 / self.curvature))

    def value(self, z: np.ndarray) -> np.ndarray:
        u = self._nearest(z)
        return self.loss.value(u) + 0.5 * self.curvature * (u - z) ** 2

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return self.curvature * (z - self._nearest(z))

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        """Return L''(u) / (1 + L''(u) ε/2λ²), and 2λ²/ε where u is at a kink."""
        bend = self.loss.second_derivative(self._nearest(z))
        finite = np.where(np.isfinite(bend), bend, 0)
        return np.where(np.isfinite(bend), finite / (1 + finite / self.curvature), self.curvature)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        room = 1 / self.curvature
        far = self.loss.prox(z, step + room)
        return z + step / (step + room) * (far - z)
