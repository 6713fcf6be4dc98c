"""The loss of fine-tuning: labels, smoothed, and what a teacher says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.losses import MulticlassLogistic, SeveralTargets, SoftTargets


class Batch(NamedTuple):
    """What is known of the images of a step."""

    y: np.ndarray
    taught: np.ndarray | None = None
    n: int | None = None
    weights: np.ndarray | None = None


class TuningLoss:
    """(1 − w) ((1 − ε) ℓ(z, y) + ε KL(uniform ‖ softmax z)) + w L(z, p), the mean of a batch."""

    def __init__(self, settings: FineTuning, class_weights: np.ndarray | None = None) -> None:
        self._class_weights = class_weights
        self.labels = MulticlassLogistic(settings.margin)
        self.teacher = (
            SeveralTargets() if settings.several else SoftTargets(settings.teacher_temperature)
        )
        self._teacher_weight = settings.teacher_weight
        self._smoothing = settings.label_smoothing
        self._uniform = SoftTargets(1.0)

    def residual(self, Z: np.ndarray, batch: Batch) -> tuple[float, np.ndarray]:
        """Return the mean loss of scores, and its derivative in them, (k, n)."""
        omega = self._weights(batch.y, batch.n)
        if batch.weights is not None:
            omega = omega * batch.weights
        taught = batch.taught
        value, R = self.labels.residual(Z, batch.y, omega)
        if self._smoothing:
            uniform = np.full(Z.shape, 1 / len(Z), Z.dtype)
            spread = self._uniform.residual(Z, uniform, omega)
            value, R = _weighted(self._smoothing, (value, R), spread)
        if taught is None:
            return value, R
        return _weighted(self._teacher_weight, (value, R), self.teacher.residual(Z, taught, omega))

    def _weights(self, y: np.ndarray, n: int | None) -> np.ndarray:
        """Return the weights of images of these classes in the mean of a step of n images."""
        each = np.full(len(y), 1 / (n or len(y)))
        return each if self._class_weights is None else each * self._class_weights[y]


def _weighted(
    weight: float, first: tuple[float, np.ndarray], second: tuple[float, np.ndarray]
) -> tuple[float, np.ndarray]:
    """Return 1 − weight of a loss and its derivative, changed in place, and weight of another."""
    (value, R), (other, towards) = first, second
    R *= np.float32(1 - weight)
    R += np.float32(weight) * towards
    return (1 - weight) * value + weight * other, R


def log_loss(Z: np.ndarray, y: np.ndarray) -> float:
    """Return the sum of the log-losses of scores (k, m) for classes (m,)."""
    scores = Z.astype(np.float64)
    return float(np.sum(logsumexp(scores, axis=0) - scores[y, np.arange(len(y))]))
