"""The loss that compares scores with a teacher's: softened probabilities of all classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from visionshare.errors import InputError


class SeveralTargets:
    """L(z, p) = Σ_c log(1 + e^{z_c}) − p_c z_c: each class alone is there with its probability."""

    def residual(self, Z: np.ndarray, P: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """Return Σ_i ω_i L(z_i, p_i) and its derivative in the scores, (k, n)."""
        losses = np.sum(np.logaddexp(0, Z) - P * Z, axis=0, dtype=np.float64)
        R = (expit(Z) - P) * omega.astype(Z.dtype)
        return float(np.dot(losses, omega)), R


@dataclass(frozen=True)
class SoftTargets:
    """L(z, p) = τ² Σ_c p_c log(p_c / softmax(z / τ)_c), for a teacher's p = softmax(t / τ).

    Its derivative τ (softmax(z / τ) − p) is near (z − t) / k, up to a constant, where τ is large:
    then all k classes' scores are learned, not the first alone.

    Parameters
    ----------
    temperature : float, default 3.0
        τ, above 0, of the teacher's and the student's scores.

    References
    ----------
    G. Hinton, O. Vinyals, J. Dean, "Distilling the knowledge in a neural network", 2015, §2.

    Examples
    --------
    >>> import numpy as np
    >>> loss = SoftTargets(2.0)
    >>> P = loss.softmax(np.array([[2.0], [0.0]]))
    >>> P.round(3).tolist()
    [[0.731], [0.269]]
    >>> value, R = loss.residual(np.array([[1.0], [0.0]]), P, np.ones(1))
    >>> round(value, 3), R.round(3).tolist()
    (0.105, [[-0.217], [0.217]])
    """

    temperature: float = 3.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < np.inf:
            raise InputError("temperature", self.temperature, "a finite number above 0")

    def _logarithms(self, Z: np.ndarray) -> np.ndarray:
        V = Z / Z.dtype.type(self.temperature)
        V -= V.max(axis=0)
        V -= np.log(np.exp(V).sum(axis=0))
        return V

    def softmax(self, Z: np.ndarray) -> np.ndarray:
        """Return the softened probabilities (k, n) of scores (k, n)."""
        return np.exp(self._logarithms(Z))

    def residual(self, Z: np.ndarray, P: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """Return Σ_i ω_i L(z_i, p_i) and its derivative in the scores, (k, n)."""
        logs = self._logarithms(Z)
        tau = self.temperature
        log_probabilities = np.log(np.maximum(P, np.finfo(P.dtype).tiny))
        losses = np.sum(P * (log_probabilities - logs), axis=0, dtype=np.float64)
        R = (np.exp(logs) - P) * (tau * omega).astype(Z.dtype)
        return float(tau**2 * np.dot(losses, omega)), R
