"""What a source of scores can be: a compact classifier, an estimator, or any callable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily
from visionshare.generators.costs import held_bytes


@runtime_checkable
class LinearScores(Protocol):
    """What a compact classifier says of its scores: weighted sums of a family's features."""

    family: FeatureFamily
    weights: np.ndarray
    intercept: np.ndarray


@dataclass(frozen=True, eq=False)
class LinearSource:
    """Scores of a compact classifier, or of what a file kept of one."""

    family: FeatureFamily
    weights: np.ndarray
    intercept: np.ndarray
    name: str
    classes: list[Any] | None

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.weights)

    def scores(self, images: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return scores (n, k), float64, feature after feature."""
        # A matrix product may sum in another order for another number of images; this never does.
        values = self.family.transform(images, None, n_jobs).astype(np.float64)
        scores = np.tile(self.intercept.astype(np.float64), (len(values), 1))
        for j, column in enumerate(values.T):
            scores += column[:, None] * self.weights[:, j].astype(np.float64)
        return scores

    def macs(self) -> int:
        """Return those of the features and of the scores."""
        return int(self.family.macs()) + int(self.weights.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return held_bytes(self.family) + self.weights.nbytes + self.intercept.nbytes


@dataclass(frozen=True, eq=False)
class CalledSource:
    """Scores of an estimator or a callable."""

    source: Any
    score: Callable[[np.ndarray], Any]
    name: str
    classes: list[Any] | None
    n_outputs: int

    def scores(self, images: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return scores (n, n_outputs), checked."""
        scores = _table(self.score(images), len(images), self.name)
        if scores.shape[1] != self.n_outputs:
            accepted = f"{self.n_outputs} scores per image from {self.name}, as when it was fitted"
            raise InputError("sources", scores.shape, accepted)
        return scores

    def macs(self) -> int | None:
        """Return what the source says in an attribute ``macs``."""
        cost = getattr(self.source, "macs", None)
        if isinstance(cost, bool) or not isinstance(cost, Integral) or cost < 0:
            return None
        return int(cost)


Source = LinearSource | CalledSource


def as_source(source: Any, images: np.ndarray) -> Source:
    """Return a source of scores for images like these."""
    if isinstance(source, LinearScores):
        return _linear(source, images.shape[1:])
    name = str(getattr(source, "__name__", type(source).__name__))
    score = None if isinstance(source, type) else _scorer(source, images)
    if score is None:
        accepted = (
            "compact classifiers, fitted estimators with decision_function or predict_proba, "
            "fitted regressors, or functions of images"
        )
        raise InputError("sources", source, accepted)
    from sklearn.exceptions import NotFittedError

    try:
        n_outputs = _table(score(images), len(images), name).shape[1]
    except NotFittedError:
        raise InputError("sources", f"{name} that is not fitted", "fitted estimators") from None
    return CalledSource(source, score, name, _classes(source, n_outputs), n_outputs)


def opposite(source: Source) -> bool:
    """Return whether a source has two scores, one the negative of the other."""
    if not isinstance(source, LinearSource) or source.n_outputs != 2:
        return False
    second = (source.weights[1], source.intercept[1])
    return all(np.array_equal(-a, b) for a, b in zip((source.weights[0], source.intercept[0]),
                                                     second, strict=True))  # fmt: skip


def _linear(source: Any, shape: tuple[int, ...]) -> LinearSource:
    if tuple(source.family.image_shape_) != tuple(shape):
        accepted = f"sources for images of shape {tuple(shape)}"
        raise InputError("sources", f"one for {tuple(source.family.image_shape_)}", accepted)
    if isinstance(source, LinearSource):
        return source
    weights = np.ascontiguousarray(source.weights, np.float32)
    intercept = np.ascontiguousarray(source.intercept, np.float32)
    classes = _classes(source, len(weights))
    return LinearSource(source.family, weights, intercept, type(source).__name__, classes)


def _scorer(source: Any, images: np.ndarray) -> Callable[[np.ndarray], Any] | None:
    """Return the function that gives a source's scores, None where there is none."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(source, method):
            return _of_rows(source, getattr(source, method), images)
    # The classes that a classifier predicts are names, no scores.
    if hasattr(source, "__sklearn_tags__"):
        from sklearn.base import is_regressor

        if is_regressor(source):
            return _of_rows(source, source.predict, images)
    return source if callable(source) else None


def _of_rows(
    source: Any, score: Callable[[np.ndarray], Any], images: np.ndarray
) -> Callable[[np.ndarray], Any]:
    """Return an estimator's scores as a function of images: as rows where it learned from rows."""
    p = getattr(source, "n_features_in_", None)
    if p is None:
        return score
    if p != images[0].size:
        accepted = f"estimators of {images[0].size} inputs, the values of an image"
        raise InputError("sources", f"{type(source).__name__} of {p} inputs", accepted)
    return lambda images: score(images.reshape(len(images), -1))


def _table(scores: Any, n: int, name: str) -> np.ndarray:
    """Return scores as (n, outputs)."""
    table = np.asarray(scores)
    if table.dtype.kind not in "fiub" or table.ndim not in (1, 2) or len(table) != n:
        given = f"{table.dtype} of shape {table.shape} from {name}"
        raise InputError("sources", given, f"scores of shape ({n},) or ({n}, c) for {n} images")
    if not np.isfinite(table).all():
        raise InputError("sources", f"NaN or infinity from {name}", "finite scores")
    return table.reshape(n, -1)


def _classes(source: Any, n_outputs: int) -> list[Any] | None:
    """Return the class that each score is for, None where a source has no classes."""
    given = getattr(source, "classes_", None)
    if not isinstance(given, (np.ndarray, Sequence)):
        return None
    classes = np.asarray(given).tolist()
    if n_outputs == 1 and len(classes) == 2:
        return classes[1:]
    return classes if len(classes) == n_outputs else None
