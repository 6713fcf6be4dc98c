"""Ridge regression for the classes, from sums over batches of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from visionshare.datasets import ImageSet

__all__ = ["PENALTIES", "Lift", "Ridge", "RidgePredictor", "sums", "validation_errors"]

# Of the mean of the features' variances.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
BATCH = 1000


class Lift(Protocol):
    """What makes features of images."""

    @property
    def n_features(self) -> int:
        """Features of an image."""
        ...

    def transform(self, images: np.ndarray) -> np.ndarray:
        """Return features (n, n_features), float32, of images (n, H, W) of bytes."""
        ...


class Ridge:
    """Least squares for ±1 of each class with a penalty on the weights, from sums over batches."""

    def __init__(self, p: int, classes: int) -> None:
        self._gram = np.zeros((p, p), np.float64)
        self._products = np.zeros((p, classes), np.float64)
        self._sums, self._targets, self._n = np.zeros(p), np.zeros(classes), 0
        self._shift = np.zeros(p, np.float32)

    def add(self, Z: np.ndarray, y: np.ndarray) -> None:
        """Add examples."""
        if not self._n:
            # Features far from 0 beside their spread would lose their digits in float32.
            self._shift = Z.mean(axis=0, dtype=np.float64).astype(np.float32)
        Z = Z - self._shift
        T = np.where(np.arange(len(self._targets)) == y[:, None], 1, -1).astype(np.float32)
        self._gram += Z.T @ Z
        self._products += Z.T @ T
        self._sums += Z.sum(axis=0, dtype=np.float64)
        self._targets += T.sum(axis=0, dtype=np.float64)
        self._n += len(Z)

    def solve(self, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (p, classes) and intercepts; the penalty is relative to mean variance."""
        mean, target = self._sums / self._n, self._targets / self._n
        covariance = self._gram / self._n
        covariance -= np.outer(mean, mean)
        diagonal = np.einsum("ii->i", covariance)
        diagonal += penalty * diagonal.mean()
        products = self._products / self._n - np.outer(mean, target)
        weights = cho_solve(cho_factor(covariance, overwrite_a=True), products)
        return weights.astype(np.float32), (target - (mean + self._shift) @ weights).astype(
            np.float32
        )


@dataclass(frozen=True)
class RidgePredictor:
    """The labels that features times weights (n_features, classes), plus intercepts, give."""

    lift: Lift
    weights: np.ndarray
    intercept: np.ndarray

    def __call__(self, images: np.ndarray) -> np.ndarray:
        return np.argmax(self.lift.transform(images) @ self.weights + self.intercept, axis=1)


def sums(lift: Lift, images: ImageSet, ridge: Ridge | None = None) -> Ridge:
    """Return the sums over a set of images, added to those that are there."""
    ridge = Ridge(lift.n_features, len(images.classes)) if ridge is None else ridge
    for i in range(0, len(images), BATCH):
        ridge.add(lift.transform(images.images[i : i + BATCH]), images.labels[i : i + BATCH])
    return ridge


def validation_errors(
    lift: Lift,
    ridge: Ridge,
    validation: ImageSet,
    penalties: Sequence[float] = PENALTIES,
) -> list[float]:
    """Return the error on the validation images, for each penalty.

    With more features than examples a penalty may be below what sums in float32 can show: its
    error counts as 1.
    """
    Q, errors = lift.transform(validation.images), []
    for penalty in penalties:
        try:
            weights, intercept = ridge.solve(penalty)
        except LinAlgError:
            errors.append(1.0)
            continue
        wrong = np.argmax(Q @ weights + intercept, axis=1) != validation.labels
        errors.append(float(np.mean(wrong)))
    return errors
