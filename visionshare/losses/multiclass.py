"""Losses: value, residual and curvature of the scores. Pure functions of arrays.

Scores are class-major here, ``Z`` of shape (k, n): every step is then a pass over contiguous
examples. A loss is a frozen dataclass with the methods of :class:`Loss`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from visionshare.errors import InputError
from visionshare.losses.separable import divergence


class Loss(Protocol):
    """What a solver asks of a loss."""

    def value(self, Z: np.ndarray, y: np.ndarray, omega: np.ndarray) -> float:
        """Return Σ_i ω_i ℓ(z_i, y_i), accumulated in float64."""
        ...

    def residual(self, Z: np.ndarray, y: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and R (k, n), R_qi = ω_i ∂ℓ(z_i, y_i)/∂z_qi."""
        ...

    def curvature(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ρ (k, n): the Hessian in the scores of example i is diag(ρ_i) − ρ_iρ_iᵀ."""
        ...


@dataclass(frozen=True)
class MulticlassLogistic:
    """ShareBoost's loss ln Σ_c exp(margin·1[c≠y] − z_y + z_c) (paper, equation 3).

    Parameters
    ----------
    margin : float, or tuple of k tuples of k floats, default 1.0
        1 is the paper's loss, an upper bound on the multiclass hinge; 0 is the plain
        multinomial logistic loss. Δ(y, c) of each pair of classes, the true one first, bounds the
        cost of taking y for c: e^Δ(y, c) stands for e^1 then.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MulticlassLogistic(margin=0.0)
    >>> round(loss.value(np.zeros((4, 1)), np.array([2]), np.array([1.0])), 6)
    1.386294
    """

    margin: float | tuple[tuple[float, ...], ...] = 1.0

    def _exponentials(
        self, Z: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # Relative to the true class, whose own term is exactly 1: the small sums of examples
        # that are classified well keep all their digits (log1p), also in float32.
        columns = np.arange(Z.shape[1])
        V = Z - Z[y, columns]
        if isinstance(self.margin, tuple):
            V += np.asarray(self.margin, Z.dtype).T[:, y]
        else:
            V += Z.dtype.type(self.margin)
        V[y, columns] = -np.inf
        peak = np.maximum(V.max(axis=0), 0)
        V -= peak
        np.exp(V, out=V)
        return V, V.sum(axis=0), peak

    def losses(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ℓ(z_i, y_i) of each example, (n,)."""
        _, others, peak = self._exponentials(Z, y)
        return peak + np.log1p(np.expm1(-peak) + others)

    def value(self, Z: np.ndarray, y: np.ndarray, omega: np.ndarray) -> float:
        return float(np.dot(self.losses(Z, y).astype(np.float64), omega))

    def residual(self, Z: np.ndarray, y: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        R, others, peak = self._exponentials(Z, y)
        losses = peak + np.log1p(np.expm1(-peak) + others)
        self._slopes(R, y, others, (omega / (np.exp(-peak) + others)).astype(Z.dtype))
        return float(np.dot(losses.astype(np.float64), omega)), R

    def derivative(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ∂ℓ(z_i, y_i)/∂z_qi (k, n)."""
        R, others, peak = self._exponentials(Z, y)
        return self._slopes(R, y, others, 1 / (np.exp(-peak) + others))

    @staticmethod
    def _slopes(R: np.ndarray, y: np.ndarray, others: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the derivative, written over the exponentials of the other classes."""
        R *= share
        R[y, np.arange(len(others))] = -others * share
        return R

    def curvature(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the probabilities ρ (k, n) of the loss, margin included."""
        P, others, peak = self._exponentials(Z, y)
        true = np.exp(-peak)
        P[y, np.arange(Z.shape[1])] = true
        P /= true + others
        return P


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
    curvature = 0.5
    template = 0.5

    def importance(self, z: np.ndarray) -> np.ndarray:
        """Return the probabilities; at the true class, that of all others."""
        return np.abs(self.derivative(z))

    def value(self, z: np.ndarray) -> np.ndarray:
        return MulticlassLogistic(0.0).losses(np.ascontiguousarray(z.T), self.y)[:, None]

    def derivative(self, z: np.ndarray) -> np.ndarray:
        return MulticlassLogistic(0.0).derivative(np.ascontiguousarray(z.T), self.y).T

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        P = MulticlassLogistic(0.0).curvature(np.ascontiguousarray(z.T), self.y).T
        return P * (1 - P)

    def fenchel_young(self, z: np.ndarray, scale: float) -> np.ndarray:
        wrong = -np.take_along_axis(self.derivative(z), self.y[:, None], axis=1)
        return divergence(self.value(z), wrong, scale)

    def prox(self, z: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Refuse: the loss has no proximal operator in closed form."""
        raise InputError("solver", "'admm' with the multinomial loss", "'fista' or 'gradboost'")


def checked_margin(given: Any) -> float | tuple[tuple[float, ...], ...]:
    """Return a margin as :class:`MulticlassLogistic` takes it.

    Examples
    --------
    >>> checked_margin(1), checked_margin([[0, 2], [1, 0]])
    (1.0, ((0.0, 2.0), (1.0, 0.0)))
    """
    accepted = "a finite number of at least 0, or a square of such numbers, one row a class"
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError("margin", given, accepted) from None
    square = values.ndim == 2 and values.shape[0] == values.shape[1] > 1
    if isinstance(given, (bool, str)) or not (values.ndim == 0 or square):
        raise InputError("margin", given, accepted)
    if not np.isfinite(values).all() or values.min() < 0:
        raise InputError("margin", given, accepted)
    if values.ndim == 0:
        return float(values)
    return tuple(tuple(map(float, row)) for row in values)
