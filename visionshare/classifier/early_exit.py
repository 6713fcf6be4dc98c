"""A compact classifier that stops at the first round where its scores are far enough apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.class_labels import accuracy
from visionshare.classifier.exit_rule import ExitRule, check_rule, score_margins, true_numbers
from visionshare.errors import InputError
from visionshare.machine.resources import product
from visionshare.scores import finite_scores, predict_labels

if TYPE_CHECKING:
    from visionshare.classifier.compact import CompactClassifier
    from visionshare.generators.base import FeatureFamily

_BATCH = 4096


@dataclass(frozen=True)
class ExitStage:
    """The features and weights of one stage, after which an image may stop.

    Attributes
    ----------
    family : FeatureFamily
        The features that this stage adds to those before.
    weights : ndarray of shape (k, n), float32
        Of all features so far.
    intercept : ndarray of shape (k,), float32
    margin : float or None
        How far ahead the best score must be to stop here; None for the last stage.

    Examples
    --------
    >>> from visionshare import Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2)))
    >>> stage = ExitStage(family, np.eye(2, 4), np.zeros(2), margin=1.5)
    >>> stage.margin, stage.family.n_features_
    (1.5, 4)
    """

    family: FeatureFamily
    weights: np.ndarray
    intercept: np.ndarray
    margin: float | None


@dataclass(frozen=True)
class ExitFigures:
    """Errors and costs of early exit on a set of images.

    Attributes
    ----------
    errors : int
        Images that are misclassified.
    average_macs : float
        Mean multiply-accumulates per image.
    max_macs : int
        What the images that never stop early need.
    stage_fractions : tuple of float
        Fraction of the images that stop at each stage; the last is of those that never stop early.

    Examples
    --------
    >>> figures = ExitFigures(7, 1500.0, 4000, (0.8, 0.2))
    >>> figures.average_macs / figures.max_macs
    0.375
    """

    errors: int
    average_macs: float
    max_macs: int
    stage_fractions: tuple[float, ...]


class EarlyExit:
    """Evaluates the features of a classifier by stages; most images need only the first ones.

    Parameters
    ----------
    classifier : CompactClassifier
        With a learning path.
    rule : ExitRule, optional
        The classifier's ``exit_rule`` when omitted.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    stages : tuple of ExitStage
    costs : ndarray of int64
        Multiply-accumulates of an image that stops after each stage; the last is the most that
        any image needs.

    Raises
    ------
    InputError
        If there is no rule, or it names rounds that the path does not have.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import Pixels, ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> family = Pixels().fit(X)
    >>> model = ShareBoost(rounds=30).fit(family.transform(X[:900]), y[:900])
    >>> early = EarlyExit(model.to_classifier(family), ExitRule((10, 20), (1.5, 1.0)))
    >>> stops = early.stops(X[900:])
    >>> bool(early.costs[stops].mean() < early.costs[-1])
    True
    """

    def __init__(self, classifier: CompactClassifier, rule: ExitRule | None = None) -> None:
        rule = classifier.exit_rule if rule is None else rule
        if rule is None:
            accepted = (
                "a classifier with a rule: train it with [early_exit], or see learn_exit_rule"
            )
            raise InputError("exit_rule", None, accepted)
        check_rule(rule, len(classifier.path))
        self.classifier = classifier
        self.rule = rule
        self.classes_ = classifier.classes_
        steps = [classifier.path[t - 1] for t in rule.rounds]
        ends = [0, *(step.n_features for step in steps), classifier.n_features]
        families = [classifier.family.take(np.arange(*span)) for span in pairwise(ends)]
        self.stages = (
            *(
                ExitStage(family, step.weights, step.intercept, margin)
                for family, step, margin in zip(families, steps, rule.margins, strict=False)
            ),
            ExitStage(families[-1], classifier.weights, classifier.intercept, None),
        )
        costs = [int(stage.family.macs()) + stage.weights.size for stage in self.stages]
        self.costs = np.cumsum(costs)

    def run(self, images: Any, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return each image's scores where it stopped (n, k), and the stage (n,) from 0.

        It takes what :meth:`CompactClassifier.decision_function` takes, as all methods do.
        """
        images = self.classifier.rasters(images)
        scores = np.empty((len(images), len(self.classes_)), np.float32)
        stops = np.empty(len(images), np.int64)
        for start in range(0, max(len(images), 1), _BATCH):
            part = slice(start, start + _BATCH)
            with np.errstate(over="ignore", invalid="ignore"):
                scores[part], stops[part] = self._batch(images[part], n_jobs)
            finite_scores(scores[part], "images")
        return scores, stops

    def _batch(self, images: np.ndarray, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        final_scores = np.empty((len(images), len(self.classes_)), np.float32)
        stops = np.full(len(images), len(self.stages) - 1)
        # The images that have not stopped, and their features so far.
        remaining = np.arange(len(images))
        values = np.empty((len(images), 0), np.float32)
        for number, stage in enumerate(self.stages):
            rest = images if len(remaining) == len(images) else images[remaining]
            values = np.hstack([values, stage.family.transform(rest, None, n_jobs)])
            scores = product(values, stage.weights.T) + stage.intercept
            final_scores[remaining] = scores
            if stage.margin is None:
                break
            stop = score_margins(scores) >= stage.margin
            stops[remaining[stop]] = number
            remaining = remaining[~stop]
            values = values[~stop]
            if len(remaining) == 0:
                break
        return final_scores, stops

    def decision_function(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return the scores (n, k) of the round at which each image stopped, float32."""
        return self.run(images, n_jobs)[0]

    def predict(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return the class of each image."""
        return predict_labels(self.classes_, self.decision_function(images, n_jobs))

    def predict_proba(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return probabilities (n, k), with the temperature of the whole classifier."""
        return self.classifier.probabilities(self.decision_function(images, n_jobs))

    def score(self, images: Any, y: Any, n_jobs: int = 1) -> float:
        """Return the fraction of the images whose class is predicted."""
        return accuracy(y, self.predict(images, n_jobs))

    def stops(self, images: Any, n_jobs: int = 1) -> np.ndarray:
        """Return the stage, from 0, at which each image stops: ``costs[stops]`` is what it cost."""
        return self.run(images, n_jobs)[1]

    def measure(self, images: Any, labels: np.ndarray, n_jobs: int = 1) -> ExitFigures:
        """Return errors and costs on labeled images.

        Parameters
        ----------
        images : array or sequence
            m of them.
        labels : ndarray of shape (m,)
            Their classes.

        Raises
        ------
        InputError
            If there is not a class for each image, or no image, or a label is no class.
        """
        numbers = true_numbers(labels, images, self.classes_)
        scores, stops = self.run(images, n_jobs)
        counts = np.bincount(stops, minlength=len(self.stages))
        return ExitFigures(
            errors=int(np.sum(np.argmax(scores, axis=1) != numbers)),
            average_macs=float(self.costs[stops].mean()),
            max_macs=int(self.costs[-1]),
            stage_fractions=tuple((counts / len(stops)).tolist()),
        )
