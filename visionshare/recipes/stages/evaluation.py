"""The evaluation: errors on the test images, in all and after each round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from visionshare.answers import Answers, ValueRule
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


def evaluate(
    classifier: CompactClassifier,
    test: ImageSet,
    jobs: int = 1,
    scores: np.ndarray | None = None,
) -> Evaluation:
    """Return how good a classifier is on test images; their scores may be there already."""
    if len(test) == 0:
        return Evaluation(np.array([], classifier.classes_.dtype), None, None, None)
    if test.answers is not None:
        if scores is None:
            scores = classifier.decision_function(as_rasters(test.images), jobs)
        return _of_answers(classifier, test.answers, scores)
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


def _of_answers(classifier: CompactClassifier, answers: Answers, scores: np.ndarray) -> Evaluation:
    """Return how far values are off; or precision, recall and average precision of each label."""
    rule = classifier.answer
    truth = answers.truth
    probabilities = classifier.probabilities(scores)
    assert rule is not None
    said = rule.said(probabilities)
    if isinstance(rule, ValueRule):
        errors = ValueErrors(*rule.mean_errors(said, truth))
        return Evaluation(said, None, None, None, values=errors)
    has = rule.has(probabilities)
    average = rule.average_precisions(scores, truth)
    figures = []
    for i, label in enumerate(rule.labels):
        right = int((has[:, i] & truth[:, i]).sum())
        n = int(truth[:, i].sum())
        n_said = int(has[:, i].sum())
        precision = right / n_said if n_said else None
        average_precision = float(average[i]) if n else None
        threshold = rule.thresholds[i]
        recall = right / n if n else None
        figures.append(LabelFigures(label, n, threshold, precision, recall, average_precision))
    return Evaluation(said, None, None, None, labels=figures)


def answer_figures(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures of values or of several labels by their names; none of classes."""
    values = evaluation.values
    labels = evaluation.labels
    if values is not None:
        return {
            "mean_absolute_error": values.mean,
            "interval": list(values.interval),
            "constant_error": values.constant,
        }
    if labels is None:
        return {}
    known = [one.average_precision for one in labels if one.average_precision is not None]
    return {
        "mean_average_precision": float(np.mean(known)) if known else None,
        "labels": [one._asdict() for one in labels],
    }


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
