"""A support vector machine of the Gaussian kernel on pixels: scikit-learn's SVC."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.svm import SVC

from benchmarks.peers.peer import (
    Choice,
    Effort,
    Trained,
    inverse_of_variance,
    pixel_rows,
    processor_stopwatch,
    two_parts,
)
from scripts.reproduce.results import listed, render
from visionshare.datasets import ImageSet

__all__ = ["PairwiseVotes", "SvmPredictor", "fit", "learn", "searched", "tune"]

COSTS = (1.0, 3.0, 10.0, 30.0)
# Of 1 / (inputs × variance), which is scikit-learn's "scale".
WIDTHS = (0.5, 1.0, 2.0, 3.0, 4.0)
MOST, VALIDATION = 10_000, 5_000
CACHE_MB = 2000


class PairwiseVotes:
    """A fitted SVC whose kernel is computed by a matrix product in float32.

    The same sums and votes as libsvm's, several times faster than its loop over support vectors.

    Parameters
    ----------
    model : SVC
        Of the Gaussian kernel.
    gamma : float
        That of the kernel.
    """

    def __init__(self, model: SVC, gamma: float) -> None:
        self._vectors = np.ascontiguousarray(model.support_vectors_, np.float32)
        self._squares = np.sum(np.square(self._vectors), axis=1)
        # Of two classes scikit-learn has the opposite signs: positive for the second one.
        sign = -1 if len(model.classes_) == 2 else 1
        self._duals = sign * model.dual_coef_.astype(np.float32)
        self._intercepts = sign * model.intercept_
        self._ends = np.concatenate([[0], np.cumsum(model.n_support_)])
        self._gamma = np.float32(gamma)
        self._classes = model.classes_

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the score of each pair of classes, (n, k (k − 1) / 2), of rows in float32."""
        kernel = X @ self._vectors.T
        kernel *= 2
        kernel -= self._squares
        kernel -= np.sum(np.square(X), axis=1)[:, None]
        kernel *= self._gamma
        np.exp(kernel, out=kernel)
        ends = itertools.pairwise(self._ends)
        parts = [kernel[:, a:b] @ self._duals[:, a:b].T for a, b in ends]
        pairs = itertools.combinations(range(len(parts)), 2)
        return np.stack([parts[i][:, j - 1] + parts[j][:, i] for i, j in pairs], 1) + (
            self._intercepts
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class with the most votes, the first of those with as many."""
        k = len(self._classes)
        first, second = np.triu_indices(k, 1)
        for_first = self.decision_function(X) > 0
        votes = for_first @ np.eye(k)[first] + ~for_first @ np.eye(k)[second]
        return self._classes[np.argmax(votes, axis=1)]

    @property
    def macs(self) -> int:
        """Multiply-accumulates per image, without the exponentials."""
        return int(self._vectors.size + self._duals.size)

    @property
    def n_vectors(self) -> int:
        """Support vectors of all classes."""
        return len(self._vectors)


def _error(
    X: np.ndarray, y: np.ndarray, Q: np.ndarray, truth: np.ndarray, pair: tuple[float, float]
) -> float:
    model = SVC(C=pair[0], gamma=pair[1], cache_size=500).fit(X, y)
    return float(np.mean(PairwiseVotes(model, pair[1]).predict(Q) != truth))


# Rows (n, p), float32, of images.
Rows = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class SvmPredictor:
    """The labels that votes give to rows of images."""

    votes: PairwiseVotes
    rows: Rows

    def __call__(self, images: np.ndarray) -> np.ndarray:
        return self.votes.predict(self.rows(images))


def searched(
    train: ImageSet, rows: Rows, costs: Sequence[float], widths: Sequence[float], jobs: int
) -> Choice:
    """Return the C and the γ with the fewest errors on a held-out part of the training images."""
    part, validation = two_parts(train, MOST, VALIDATION)
    X, Q = rows(part.images), rows(validation.images)
    scale = inverse_of_variance(X)
    pairs = [(cost, width * scale) for cost in costs for width in widths]
    errors = Parallel(jobs, prefer="threads")(
        delayed(_error)(X, part.labels, Q, validation.labels, pair) for pair in pairs
    )
    best = int(np.argmin(errors))
    counts = {"n_pairs": len(pairs), "n_train": len(part), "n_validation": len(validation)}
    cost, gamma = pairs[best]
    return {"cost": cost, "gamma": gamma, "scale": scale, "error": errors[best], **counts}


def fit(train: ImageSet, rows: Rows, choice: Choice) -> SvmPredictor:
    """Train with a choice on all training images."""
    model = SVC(C=choice["cost"], gamma=choice["gamma"], cache_size=CACHE_MB)
    model.fit(rows(train.images), train.labels)
    return SvmPredictor(PairwiseVotes(model, choice["gamma"]), rows)


def tune(train: ImageSet, effort: Effort) -> Choice:
    """Choose C and γ on a part of the training images."""
    return searched(train, pixel_rows, COSTS, WIDTHS, effort.jobs)


def learn(train: ImageSet, effort: Effort, choice: Choice) -> Trained:
    """Train on all images."""
    with processor_stopwatch() as seconds:
        predict = fit(train, pixel_rows, choice)
    votes = predict.votes
    settings = render(
        "peers/svm",
        n_pairs=choice["n_pairs"],
        costs=listed(COSTS),
        widths=listed(WIDTHS),
        scale=f"{choice['scale']:.4f}",
        n_validation=choice["n_validation"],
        n_train=choice["n_train"],
        cost=f"{choice['cost']:g}",
        gamma=f"{choice['gamma']:.4f}",
        error=f"{100 * choice['error']:.2f}",
        n_vectors=f"{votes.n_vectors:,}",
        jobs=effort.jobs,
    )
    return Trained(predict, votes.macs, f"{votes.macs:,}", 4 * votes.macs, settings, seconds[0])
