"""Results of a classifier on labeled images, and the figures that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from visionshare.answers import ValueRule
from visionshare.class_labels import class_names, label_array
from visionshare.classifier import CompactClassifier
from visionshare.errors import InputError
from visionshare.scores import predict_labels

ORIGINS = ("given", "held out", "unknown")

# An error of this part of the commonest class's error is near it.
_NEAR = 0.9


@dataclass(frozen=True, eq=False)
class Results:
    """Predictions of a classifier on labeled images.

    Parameters
    ----------
    images : ndarray of shape (n, H, W[, C]) or (n, p)
    labels : ndarray of shape (n,), int
        Indexes into ``classes``.
    predictions : ndarray of shape (n,), int
        Indexes into ``classes``.
    probabilities : ndarray of shape (n, k)
    classes : tuple of str
    names : tuple of str, optional
        Names of the images' files.
    origin : {"unknown", "given", "held out"}, default "unknown"
        Whether the images came as test images, were kept aside from the training images, or may
        have trained the classifier for all that is known.
    source : str, default ""
        What the images are, such as the name of a data set.

    Raises
    ------
    InputError
        If the arrays do not fit each other.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.8, 0.2]])
    >>> results = Results(
    ...     np.zeros((2, 4)), np.array([0, 1]), np.array([0, 0]), probabilities, ("a", "b")
    ... )
    >>> results.errors, results.mistakes.tolist(), results.majority_error
    (1, [1], 0.5)
    """

    images: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray
    classes: tuple[str, ...]
    names: tuple[str, ...] | None = None
    origin: str = "unknown"
    source: str = ""

    def __post_init__(self) -> None:
        n = len(self.images)
        k = len(self.classes)
        for name in ("labels", "predictions"):
            values = np.asarray(getattr(self, name))
            if values.shape != (n,) or (values < 0).any() or (values >= k).any():
                raise InputError(name, values.shape, f"{n} numbers of {k} classes")
        if self.probabilities.shape != (n, k):
            raise InputError("probabilities", self.probabilities.shape, f"of shape {(n, k)}")
        if self.names is not None and len(self.names) != n:
            raise InputError("names", len(self.names), f"{n} names, one per image")
        if self.origin not in ORIGINS:
            raise InputError("origin", self.origin, " or ".join(map(repr, ORIGINS)))

    @classmethod
    def of(
        cls,
        classifier: CompactClassifier,
        images: np.ndarray,
        truth: np.ndarray,
        n_jobs: int = 1,
        names: Sequence[str] | None = None,
        origin: str = "unknown",
        source: str = "",
        scores: np.ndarray | None = None,
    ) -> Results:
        """Classify images; classes that the classifier lacks come last, with a probability of 0.

        Parameters
        ----------
        classifier : CompactClassifier
        images : ndarray of shape (n, *image_shape)
        truth : ndarray of shape (n,)
            Classes of the images, or the same as texts.
        n_jobs : int, default 1
            Threads.
        names, origin, source
            As of the class.
        scores : ndarray of shape (n, k), optional
            Of the images, where they are there already.

        Raises
        ------
        InputError
            If the images do not fit the classifier, or there is not one class for each.
        """
        known = class_names(classifier.classes_)
        given = label_array(truth, "truth").tolist()
        # 1) Number the classes. The label 1.0 is the class 1; the text "1" is it too.
        numbers: dict[Any, int] = {label: i for i, label in enumerate(classifier.classes_.tolist())}
        numbers |= {name: i for i, name in enumerate(known)}
        others = sorted({str(label) for label in given if label not in numbers} - set(known))
        classes = (*known, *others)
        numbers |= {name: i for i, name in enumerate(classes)}
        labels = [numbers[c] if c in numbers else numbers[str(c)] for c in given]
        # 2) Classify.
        if scores is None:
            scores = classifier.decision_function(images, n_jobs)
        probabilities = np.zeros((len(scores), len(classes)))
        probabilities[:, : len(known)] = classifier.probabilities(scores)
        return cls(
            images,
            labels=np.array(labels, np.int64),
            predictions=predict_labels(np.arange(len(known)), scores),
            probabilities=probabilities,
            classes=classes,
            names=None if names is None else tuple(names),
            origin=origin,
            source=source,
        )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def errors(self) -> int:
        """Number of images with another class than predicted."""
        return int(np.sum(self.labels != self.predictions))

    @property
    def error_rate(self) -> float:
        """Errors by images; 0 of none."""
        return self.errors / max(1, len(self))

    @property
    def confidences(self) -> np.ndarray:
        """Probability of the predicted class, (n,); 0 where scores overflowed."""
        chosen = self.probabilities[np.arange(len(self)), self.predictions]
        return np.nan_to_num(chosen, nan=0.0)

    @property
    def mistakes(self) -> np.ndarray:
        """Indices of misclassified images, the most confident first."""
        wrong = np.flatnonzero(self.labels != self.predictions)
        return wrong[np.argsort(-self.confidences[wrong], kind="stable")]

    @property
    def majority(self) -> int:
        """Index of the most frequent class of these images."""
        return int(np.bincount(self.labels, minlength=len(self.classes)).argmax())

    @property
    def majority_error(self) -> float:
        """Error rate of always answering the most frequent class."""
        return float(np.mean(self.labels != self.majority)) if len(self) else 0.0

    @property
    def confusion(self) -> np.ndarray:
        """Number of images by class and predicted class, (k, k)."""
        k = len(self.classes)
        counts = np.bincount(self.labels * k + self.predictions, minlength=k * k)
        return counts.reshape(k, k)

    def name_of(self, image: int) -> str:
        """Return the name of an image's file, or its number from 0."""
        return f"image {image}" if self.names is None else self.names[image]


@dataclass(frozen=True, eq=False)
class ValueResults:
    """What a classifier of values says of images, and the truth.

    Examples
    --------
    >>> rule = ValueRule((0.0, 180.0), period=360.0)
    >>> results = ValueResults(np.zeros((1, 2, 2)), np.array([359.0]), np.array([2.0]), rule)
    >>> results.errors.tolist()
    [3.0]
    """

    images: np.ndarray
    truth: np.ndarray
    said: np.ndarray
    rule: ValueRule
    names: tuple[str, ...] | None = None

    @property
    def errors(self) -> np.ndarray:
        """By how much each value is too large."""
        return self.rule.errors(self.said, self.truth)


def is_near_majority(errors: int, n: int, majority_error: float) -> bool:
    """Return whether an error is hardly less than that of always answering the commonest class."""
    if majority_error == 0:
        return errors > 0
    _, high = error_interval(errors, n)
    return high >= majority_error or errors >= _NEAR * majority_error * n


def error_interval(errors: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of an error rate."""
    from scipy.stats import binomtest

    if n == 0:
        return 0.0, 1.0
    interval = binomtest(errors, n).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


class ClassFigures(NamedTuple):
    """Figures of one class; None where they are divided by nothing."""

    name: str
    images: int
    precision: float | None
    recall: float | None
    f1: float | None


def figures_by_class(results: Results) -> list[ClassFigures]:
    """Return precision, recall and F1 of every class."""
    from sklearn.metrics import precision_recall_fscore_support

    k = len(results.classes)
    precision, recall, f1, support = precision_recall_fscore_support(
        results.labels, results.predictions, labels=np.arange(k), zero_division=np.nan
    )
    predicted = np.bincount(results.predictions, minlength=k)
    return [
        ClassFigures(
            name,
            int(support[c]),
            float(precision[c]) if predicted[c] else None,
            float(recall[c]) if support[c] else None,
            float(f1[c]) if support[c] or predicted[c] else None,
        )
        for c, name in enumerate(results.classes)
    ]


class Calibration(NamedTuple):
    """How often predictions of a confidence are right, by bins of equal width."""

    edges: np.ndarray
    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    ece: float


def calibration(results: Results, bins: int = 10) -> Calibration:
    """Return how well the probabilities of predicted classes are what they say."""
    confidences = results.confidences
    right = results.labels == results.predictions
    which = np.clip((confidences * bins).astype(int), 0, bins - 1)
    counts = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(which, confidences, bins) / counts
        accuracy = np.bincount(which, right, bins) / counts
    distance = np.nan_to_num(np.abs(confidence - accuracy))
    ece = float(np.sum(counts * distance) / max(1, len(results)))
    return Calibration(np.linspace(0, 1, bins + 1), counts, confidence, accuracy, ece)


class Confusion(NamedTuple):
    """How often one class is taken for another."""

    true: str
    predicted: str
    images: int
    share: float


def most_confused(results: Results, n: int = 10) -> list[Confusion]:
    """Return the pairs of classes that are confused most often, at most ``n``."""
    counts = results.confusion
    support = counts.sum(axis=1)
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong.ravel(), kind="stable")[:n]
    pairs = [divmod(int(place), len(counts)) for place in order if wrong.flat[place] > 0]
    return [
        Confusion(
            results.classes[true],
            results.classes[predicted],
            int(wrong[true, predicted]),
            float(wrong[true, predicted] / support[true]),
        )
        for true, predicted in pairs
    ]
