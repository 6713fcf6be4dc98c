"""A loss made smooth: the best value nearby, at the price of the squared distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from visionshare.losses import Logistic


@dataclass(frozen=True)
class Hinge:
    """L(z) = max(0, z), with a kink at 0."""

    lipschitz: ClassVar[float] = 1.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.maximum(z, 0)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return 1.0 * (z > 0)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.where(z > step, z - step, np.minimum(z, 0))


@dataclass(frozen=True)
class Absolute:
    """L(z) = |z|, with a kink at 0."""

    lipschitz: ClassVar[float] = 1.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.abs(z)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return np.sign(z)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return np.sign(z) * np.maximum(np.abs(z) - step, 0)


@dataclass(frozen=True)
class LipschitzLogistic(Logistic):
    """The logistic loss, with its Lipschitz constant and its proximal operator."""

    lipschitz: ClassVar[float] = 1.0

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        return _newton_prox(self, np.asarray(z, np.float64), step)


def _newton_prox(loss: Logistic, z: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the root of a − z + step·L'(a) for |L'| ≤ 1, by Newton steps inside a bracket."""
    low = z - step
    high = z + step
    a = z - step * loss.derivative(z)
    for _ in range(60):
        slack = a - z + step * loss.derivative(a)
        low = np.where(slack < 0, a, low)
        high = np.where(slack < 0, high, a)
        move = slack / (1 + step * loss.second_derivative(a))
        moving = np.abs(move) > 4e-16 * (1 + np.abs(a))
        if not moving.any():
            break
        newton = a - move
        # Between far points Newton's steps may go to and fro for good: halve instead.
        outside = moving & ((newton <= low) | (newton >= high))
        a = np.where(outside, 0.5 * (low + high), newton)
    return np.asarray(a)


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
    """

    loss: Any
    eps: float

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


LOSSES: dict[str, Any] = {"hinge": Hinge, "absolute": Absolute, "logistic": LipschitzLogistic}
