"""Three nearest neighbors on pixels."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.peer import Choice, Effort, Trained, pixel_rows, processor_stopwatch
from scripts.reproduce.results import render
from visionshare.datasets import ImageSet

__all__ = ["NearestNeighbors", "learn"]

NEIGHBORS = 3
# Distances of so many images to all others are in memory at once.
AT_ONCE = 100


class NearestNeighbors:
    """Nearest neighbors among all rows, by one matrix product; the lowest class wins a tie."""

    def __init__(self, X: np.ndarray, y: np.ndarray, k: int) -> None:
        # Only the order of the distances counts: ½‖x − s‖² less ½‖x‖².
        self._rows, self._halves, self._y = X, 0.5 * np.sum(np.square(X), axis=1), y
        self._k, self._classes = k, int(y.max()) + 1

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return the labels of images of bytes."""
        return self.predict(pixel_rows(images))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class of most of the k nearest rows."""
        parts = [self._near(X[i : i + AT_ONCE]) for i in range(0, len(X), AT_ONCE)]
        labels = self._y[np.concatenate(parts)]
        votes = np.sum(labels[:, :, None] == np.arange(self._classes), axis=1)
        return np.argmax(votes, axis=1)

    def _near(self, X: np.ndarray) -> np.ndarray:
        distances = X @ self._rows.T
        np.subtract(self._halves, distances, out=distances)
        return np.argpartition(distances, self._k - 1, axis=1)[:, : self._k]


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Keep all training images."""
    with processor_stopwatch() as seconds:
        rows = pixel_rows(train.images)
        model = NearestNeighbors(rows, train.labels, NEIGHBORS)
    settings = render("peers/neighbors", n_train=len(train))
    return Trained(model, rows.size, f"{rows.size:,}", rows.nbytes, settings, seconds[0])
