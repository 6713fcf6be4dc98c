"""The evaluation: errors on the test images, in all and after each round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from visionshare.answers import Answers, LabelRule, ValueRule
from visionshare.classifier import CompactClassifier, EarlyExit
from visionshare.classifier.early_exit import ExitFigures
from visionshare.datasets import ImageSet
from visionshare.datasets.intake import as_rasters
from visionshare.scores import predict_labels


@dataclass(frozen=True)
class Evaluation:
    """A classifier on test images."""

    predicted: np.ndarray
    errors: int | None
    error_rate: float | None
    early_exit: ExitFigures | None
    refused: int | None = None
    values: ValueErrors | None = None
    labels: list[LabelFigures] | None = None


class LabelFigures(NamedTuple):
    """A label on test images: how many have it, and how well it is found; None of nothing."""

    label: str
    images: int
    threshold: float
    precision: float | None
    recall: float | None
    average_precision: float | None


@dataclass(frozen=True)
class ValueErrors:
    """How far values are off on test images: the mean, its 95 % interval, that of a constant."""

    mean: float
    interval: tuple[float, float]
    constant: float


def evaluate(classifier: CompactClassifier, test: ImageSet, jobs: int = 1) -> Evaluation:
    """Return how good a classifier is on test images."""
    if len(test) == 0:
        return Evaluation(np.array([], classifier.classes_.dtype), None, None, None)
    if test.answers is not None and isinstance(classifier.answer, LabelRule):
        return _of_labels(classifier, test.answers, test.images, jobs)
    if test.answers is not None and isinstance(test.answers.rule, ValueRule):
        said = classifier.predict(test.images, jobs)
        values = test.answers.rule.mean_errors(said, test.answers.truth)
        return Evaluation(said, None, None, None, values=ValueErrors(*values))
    truth = np.asarray(test.classes)[test.labels]
    # Refused pictures are counted apart: the error is that of the classes.
    refused = None
    if classifier.unknown is not None:
        shares = classifier.known(as_rasters(test.images))
        refused = int(np.sum(shares < classifier.unknown.reject))
        classifier = replace(classifier, unknown=None)
    predicted = classifier.predict(test.images, jobs)
    errors = int(np.sum(predicted != truth))
    figures: ExitFigures | None = None
    if classifier.exit_rule is not None:
        figures = EarlyExit(classifier).measure(test.images, truth, jobs)
    return Evaluation(predicted, errors, errors / len(test), figures, refused)


def _of_labels(
    classifier: CompactClassifier, answers: Answers, images: np.ndarray, jobs: int
) -> Evaluation:
    """Return precision, recall and average precision of each label."""
    rule = classifier.answer
    assert isinstance(rule, LabelRule)
    scores = classifier.decision_function(as_rasters(images), jobs)
    said = classifier.probabilities(scores)
    has, truth = rule.has(said), answers.truth
    average = rule.average_precisions(scores, truth)
    figures = []
    for i, label in enumerate(rule.labels):
        right = int((has[:, i] & truth[:, i]).sum())
        n, n_said = int(truth[:, i].sum()), int(has[:, i].sum())
        precision = right / n_said if n_said else None
        average_precision = float(average[i]) if n else None
        threshold = rule.thresholds[i]
        recall = right / n if n else None
        figures.append(LabelFigures(label, n, threshold, precision, recall, average_precision))
    return Evaluation(rule.said(said), None, None, None, labels=figures)


def with_test_errors(
    classifier: CompactClassifier, test: ImageSet, jobs: int = 1
) -> CompactClassifier:
    """Return the classifier with the test error of every round in its path."""
    values = classifier.family.transform(test.images, None, jobs)
    truth = np.asarray(test.classes)[test.labels]
    path = []
    for step in classifier.path:
        scores = values[:, : step.n_features] @ step.weights.T + step.intercept
        predicted = predict_labels(classifier.classes_, scores)
        path.append(replace(step, test_error=float(np.mean(predicted != truth))))
    return replace(classifier, path=tuple(path))
