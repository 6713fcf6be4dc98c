"""Smooth penalties on a weight matrix: value, gradient and diagonal curvature.

``W`` is (k, n): one row a class, one column a feature. To add a penalty, write a frozen
dataclass with the methods of :class:`Penalty` and add one line to :data:`PENALTIES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np

from visionshare.errors import InputError
from visionshare.registry import Registry


class Penalty(Protocol):
    """What an accelerated-gradient solver asks of a penalty."""

    def value(self, W: np.ndarray) -> float:
        """Return Ω(W)."""
        ...

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return ∂Ω/∂W, of the shape of W."""
        ...

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Return an upper bound of the diagonal of Ω's Hessian at W, of the shape of W."""
        ...


@dataclass(frozen=True)
class NoPenalty:
    """Ω = 0: the plain ShareBoost refit."""

    alpha: float = 0.0

    def value(self, W: np.ndarray) -> float:
        return 0.0

    def gradient(self, W: np.ndarray) -> np.ndarray:
        return np.zeros_like(W)

    def curvature(self, W: np.ndarray) -> np.ndarray:
        return np.zeros_like(W)


@dataclass(frozen=True)
class Ridge:
    """Ω = λ Σ W² (ShareBoost §3.3)."""

    alpha: float

    def value(self, W: np.ndarray) -> float:
        return float(self.alpha * np.sum(W * W))

    def gradient(self, W: np.ndarray) -> np.ndarray:
        return 2 * self.alpha * W

    def curvature(self, W: np.ndarray) -> np.ndarray:
        return np.full_like(W, 2 * self.alpha)


@dataclass(frozen=True)
class SmoothL1:
    """Ω = λ Σ (1/β) ln(e^{βa} + e^{−βa}), the smoothed ℓ1 norm (ShareBoost §3.3)."""

    alpha: float
    beta: float = 100.0

    def value(self, W: np.ndarray) -> float:
        scaled = np.abs(self.beta * W)
        smoothed = np.sum(scaled + np.log1p(np.exp(-2 * scaled)))
        return float(self.alpha / self.beta * smoothed)

    def gradient(self, W: np.ndarray) -> np.ndarray:
        return self.alpha * np.tanh(self.beta * W)

    def curvature(self, W: np.ndarray) -> np.ndarray:
        return self.alpha * self.beta * (1 - np.tanh(self.beta * W) ** 2)


@dataclass(frozen=True)
class SmoothMax:
    """Ω = (λ/β) Σ_j ln Σ_i (e^{βW_ij} + e^{−βW_ij}), the smoothed ‖W‖_{∞,1} (ShareBoost §3.3).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -2.0], [1.0, 0.5]])
    >>> round(SmoothMax(alpha=1.0, beta=1000.0).value(W), 6)
    5.0
    """

    alpha: float
    beta: float = 100.0

    def _exponentials(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        scaled = self.beta * W
        peak = np.max(np.abs(scaled), axis=0, keepdims=True, initial=0.0)
        up = np.exp(scaled - peak)
        down = np.exp(-scaled - peak)
        return up, down, np.sum(up + down, axis=0, keepdims=True), peak

    def value(self, W: np.ndarray) -> float:
        _, _, total, peak = self._exponentials(W)
        return float(self.alpha / self.beta * np.sum(peak + np.log(total)))

    def gradient(self, W: np.ndarray) -> np.ndarray:
        up, down, total, _ = self._exponentials(W)
        return self.alpha * (up - down) / total

    def curvature(self, W: np.ndarray) -> np.ndarray:
        up, down, total, _ = self._exponentials(W)
        return self.alpha * self.beta * (up + down) / total


PENALTIES: Registry[Penalty] = Registry(
    "penalty",
    {"none": NoPenalty, "ridge": Ridge, "l1": SmoothL1, "max": SmoothMax},
    ("value", "gradient", "curvature"),
)


def make_penalty(given: str | Penalty, alpha: float = 1e-4, beta: float = 100.0) -> Penalty:
    """Return the penalty of a name, or the penalty that is given, with numbers of its own.

    Parameters
    ----------
    given : {"none", "ridge", "l1", "max"} or Penalty
    alpha : float
        λ, at least 0.
    beta : float, default 100.0
        β of the smoothed norms, above 0.

    Examples
    --------
    >>> make_penalty("ridge", alpha=0.5).alpha
    0.5
    """
    if not isinstance(alpha, Real) or not 0 <= alpha < np.inf:
        raise InputError("alpha", alpha, "a finite number of at least 0")
    if not isinstance(beta, Real) or not 0 < beta < np.inf:
        raise InputError("beta", beta, "a finite number above 0")
    options = {"alpha": float(alpha)} if isinstance(given, str) else {}
    if given in ("l1", "max"):
        options["beta"] = float(beta)
    return PENALTIES.make(given, **options)
