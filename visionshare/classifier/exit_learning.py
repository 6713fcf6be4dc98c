"""Where images may stop early, learned on images that were not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from visionshare.classifier.exit_plan import CandidateRound, ExitPlan
from visionshare.classifier.exit_rule import ExitRule, score_margins, true_numbers
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier.compact import CompactClassifier

__all__ = ["ExitCandidates", "check_exit_options", "exit_rule_of_values", "learn_exit_rule"]

_CANDIDATES = 24


def learn_exit_rule(
    classifier: CompactClassifier,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    tolerance: float = 5e-4,
    stages: int = 6,
    n_jobs: int = 1,
) -> ExitRule:
    """Learn where images may stop, so that few correct predictions become wrong.

    An image is harmed if the whole classifier is right and the round at which it stops is wrong.
    After each round the probability of harm is a logistic function of the margin, fitted to the
    images with Platt's targets: counted harm alone is 0 beyond the last harmed image, and margins
    that lie there underestimate it on new images. At most ``stages`` rounds of the path are
    chosen greedily: each time the one that saves most multiply-accumulates. For a price of an
    error the margin of each is the best one given the others; the least price that keeps both the
    expected and the counted harm within the tolerance is taken.

    Parameters
    ----------
    classifier : CompactClassifier
        With a learning path.
    images : ndarray of shape (m, *image_shape)
        Images that were not trained on: the margins of training images are too large.
    labels : ndarray of shape (m,)
        Their classes.
    tolerance : float, default 5e-4
        Fraction of the images that may be harmed. Images that become right do not compensate
        for them. With 0 no image stops: no finite number of images shows that none would be
        harmed.
    stages : int, default 6
        Rounds at which images may stop, at most.
    n_jobs : int, default 1
        Threads; the rule does not depend on it.

    Returns
    -------
    ExitRule
        Of no round if none saves anything.

    Raises
    ------
    InputError
        If the classifier has no path, a label is none of its classes, or an argument is out of
        range.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods", Advances in Large Margin Classifiers, 1999, for the targets.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import Pixels, ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> family = Pixels().fit(X)
    >>> model = ShareBoost(rounds=30).fit(family.transform(X[:900]), y[:900])
    >>> classifier = model.to_classifier(family)
    >>> rule = learn_exit_rule(classifier, X[900:], y[900:], tolerance=0.005)
    >>> all(1 <= t < 30 for t in rule.rounds)
    True
    """
    check_exit_options(tolerance, stages)
    true_numbers(labels, images, classifier.classes_)
    _check_path(classifier)
    values = classifier.family.transform(classifier.rasters(images), None, n_jobs)
    return exit_rule_of_values(classifier, values, labels, tolerance=tolerance, stages=stages)


def exit_rule_of_values(
    classifier: CompactClassifier,
    values: np.ndarray,
    labels: np.ndarray,
    *,
    tolerance: float = 5e-4,
    stages: int = 6,
) -> ExitRule:
    """Learn from features where images may stop, see :func:`learn_exit_rule`."""
    check_exit_options(tolerance, stages)
    _check_path(classifier)
    candidates = ExitCandidates(classifier, values, labels)
    chosen: list[int] = []
    margins: list[float] = []
    cost = candidates.plan([]).mean_cost([])
    while len(chosen) < stages:
        trials = []
        for added in range(len(candidates.rounds)):
            if added not in chosen:
                indices = sorted([*chosen, added])
                plan = candidates.plan(indices)
                best = plan.best_margins(float(tolerance))
                trials.append((plan.mean_cost(best), indices, best))
        if not trials:
            break
        least, indices, best = min(trials, key=lambda trial: (trial[0], trial[1]))
        if not least < cost:
            break
        cost, chosen, margins = least, indices, best
    rounds = [candidates.rounds[i].number for i in chosen]
    used = [(t, margin) for t, margin in zip(rounds, margins, strict=True) if margin < np.inf]
    return ExitRule(tuple(t for t, _ in used), tuple(margin for _, margin in used))


def _check_path(classifier: CompactClassifier) -> None:
    if not classifier.path:
        raise InputError("classifier", "no learning path", "a classifier that keeps its path")


def check_exit_options(tolerance: float, stages: int) -> None:
    """Check the options of :func:`learn_exit_rule` without images."""
    if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < 1:
        raise InputError("tolerance", tolerance, "a fraction from 0 to below 1")
    if isinstance(stages, bool) or not isinstance(stages, Integral) or stages < 1:
        raise InputError("stages", stages, "an integer of at least 1")


class ExitCandidates:
    """Rounds of a learning path at which images may stop, with their margins, harm and cost."""

    def __init__(
        self, classifier: CompactClassifier, values: np.ndarray, labels: np.ndarray
    ) -> None:
        self._classifier = classifier
        numbers = true_numbers(labels, values, classifier.classes_)
        self._n_images = len(numbers)
        path, last = classifier.path, len(classifier.path)

        def scores_and_errors(t: int) -> tuple[np.ndarray, np.ndarray]:
            step = path[t - 1]
            scores = values[:, : step.n_features] @ step.weights.T + step.intercept
            return scores, np.argmax(scores, axis=1) != numbers

        _, wrong_at_last = scores_and_errors(last)
        tried = np.unique(np.geomspace(1, max(last - 1, 1), _CANDIDATES).round().astype(int))
        rounds = []
        for t in (int(t) for t in tried if t < last):
            scores, wrong = scores_and_errors(t)
            margins = score_margins(scores).astype(np.float64)
            width = path[t - 1].n_features
            rounds.append(CandidateRound(t, width, margins, wrong & ~wrong_at_last))
        self.rounds = tuple(rounds)

        @cache
        def macs(start: int, stop: int) -> int:
            return int(classifier.family.take(np.arange(start, stop)).macs())

        self._macs = macs

    def plan(self, indices: Sequence[int]) -> ExitPlan:
        """Return the plan that lets images stop at some of the rounds, given by ascending index."""
        rounds = tuple(self.rounds[i] for i in indices)
        ends = [0, *(r.n_features for r in rounds), self._classifier.path[-1].n_features]
        k = len(self._classifier.classes)
        costs = [self._macs(a, b) + k * b for a, b in pairwise(ends)]
        return ExitPlan(rounds, np.cumsum(costs, dtype=np.float64), self._n_images)
