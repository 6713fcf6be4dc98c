"""The loss of fine-tuning: labels, smoothed and mixed, and what a teacher says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from visionshare.learners.fine_tuning.mixup import Mixture
from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.losses import MulticlassLogistic, SoftTargets

__all__ = ["Batch", "TuningLoss", "log_loss"]


class Batch(NamedTuple):
    """What is known of the images of a step.

    Attributes
    ----------
    y : ndarray of shape (n,), int64
        Classes.
    taught : ndarray of shape (k, n), optional
        A teacher's softened probabilities.
    mixture : Mixture, optional
        Of the images; classes and probabilities are those before it.
    n : int, optional
        Images of the whole step, where these are some of them.
    """

    y: np.ndarray
    taught: np.ndarray | None = None
    mixture: Mixture | None = None
    n: int | None = None


class TuningLoss:
    """(1 − w) ((1 − ε) ℓ(z, y) + ε KL(uniform ‖ softmax z)) + w L(z, p), the mean of a batch.

    Of an image that is a mixture, ℓ is the mixture of the losses of both classes, and p that of
    both images' probabilities.

    Parameters
    ----------
    settings : FineTuning
        ε is its ``label_smoothing``, w its ``teacher_weight`` where there is a teacher.
    class_weights : ndarray of shape (k,), optional
        An image's loss is multiplied by that of its class; by 1 when omitted.

    References
    ----------
    C. Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, §7.

    Examples
    --------
    >>> loss = TuningLoss(FineTuning(label_smoothing=0.1, margin=0.0))
    >>> _, R = loss.residual(np.zeros((2, 1)), Batch(np.array([0])))
    >>> R.round(2).tolist()
    [[-0.45], [0.45]]
    """

    def __init__(self, settings: FineTuning, class_weights: np.ndarray | None = None) -> None:
        self._class_weights = class_weights
        self.labels = MulticlassLogistic(settings.margin)
        self.teacher = SoftTargets(settings.teacher_temperature)
        self._teacher_weight = settings.teacher_weight
        self._smoothing = settings.label_smoothing
        self._uniform = SoftTargets(1.0)

    def residual(self, Z: np.ndarray, batch: Batch) -> tuple[float, np.ndarray]:
        """Return the mean loss of scores, and its derivative in them, (k, n).

        Parameters
        ----------
        Z : ndarray of shape (k, n)
            Scores.
        batch : Batch
            Their images.
        """
        omega, taught = self._weights(batch.y, batch.n), batch.taught
        value, R = self._of_labels(Z, batch, omega)
        if self._smoothing:
            uniform = np.full(Z.shape, 1 / len(Z), Z.dtype)
            spread = self._uniform.residual(Z, uniform, omega)
            value, R = _weighted(self._smoothing, (value, R), spread)
        if taught is None:
            return value, R
        if batch.mixture is not None:
            taught = np.ascontiguousarray(batch.mixture.of(taught.T).T)
        return _weighted(self._teacher_weight, (value, R), self.teacher.residual(Z, taught, omega))

    def _weights(self, y: np.ndarray, n: int | None) -> np.ndarray:
        """Return the weights of images of these classes in the mean of a step of n images."""
        each = np.full(len(y), 1 / (n or len(y)))
        return each if self._class_weights is None else each * self._class_weights[y]

    def _of_labels(
        self, Z: np.ndarray, batch: Batch, omega: np.ndarray
    ) -> tuple[float, np.ndarray]:
        if batch.mixture is None:
            return self.labels.residual(Z, batch.y, omega)
        partners, shares = batch.mixture
        value, R = self.labels.residual(Z, batch.y, omega * shares)
        theirs = self._weights(batch.y[partners], batch.n)
        other, towards = self.labels.residual(Z, batch.y[partners], theirs * (1 - shares))
        return value + other, R + towards


def _weighted(
    weight: float, first: tuple[float, np.ndarray], second: tuple[float, np.ndarray]
) -> tuple[float, np.ndarray]:
    """Return 1 − weight of a loss and its derivative, changed in place, and weight of another."""
    (value, R), (other, towards) = first, second
    R *= np.float32(1 - weight)
    R += np.float32(weight) * towards
    return (1 - weight) * value + weight * other, R


def log_loss(Z: np.ndarray, y: np.ndarray) -> float:
    """Return the sum of the log-losses of scores (k, m) for classes (m,).

    Examples
    --------
    >>> round(log_loss(np.zeros((4, 2)), np.array([0, 3])), 3)
    2.773
    """
    scores = Z.astype(np.float64)
    return float(np.sum(logsumexp(scores, axis=0) - scores[y, np.arange(len(y))]))
