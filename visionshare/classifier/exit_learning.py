"""Where images may stop early, learned on images that were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from visionshare.classifier.exit_rule import ExitRule, score_margins, true_numbers
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.classifier.compact import CompactClassifier

# Rounds that are tried: early ones are dense, later ones sparse.
_CANDIDATES = 24
# Sweeps over the margins of all rounds, and steps of the bisection of the price of an error.
_SWEEPS = 8
_PRICES = 16
_LARGEST_PRICE = 60.0


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
        Without rounds if no round would save anything.

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
    """Learn from features (m, n_features) where images may stop, see :func:`learn_exit_rule`."""
    check_exit_options(tolerance, stages)
    if not classifier.path:
        raise InputError("classifier", "no learning path", "a classifier that keeps its path")
    candidates = candidate_rounds(classifier, values, labels)
    plan_of = planner(classifier, candidates, len(values))
    chosen: list[int] = []
    margins: list[float] = []
    cost = plan_of([]).mean_cost([])
    while len(chosen) < stages:
        # 1) Add each round that is left, with the best margins of all.
        trials = []
        for added in range(len(candidates)):
            if added not in chosen:
                indices = sorted([*chosen, added])
                plan = plan_of(indices)
                best = plan.best_margins(float(tolerance))
                trials.append((plan.mean_cost(best), indices, best))
        # 2) Keep the one that saves most; stop where none saves anything.
        least, indices, best = min(trials, default=(cost, [], []), key=lambda trial: trial[:2])
        if not least < cost:
            break
        cost = least
        chosen = indices
        margins = best
    rounds = [candidates[i].number for i in chosen]
    used = [(t, margin) for t, margin in zip(rounds, margins, strict=True) if margin < np.inf]
    return ExitRule(tuple(t for t, _ in used), tuple(margin for _, margin in used))


def check_exit_options(tolerance: float, stages: int) -> None:
    """Check the options of :func:`learn_exit_rule` without images."""
    if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < 1:
        raise InputError("tolerance", tolerance, "a fraction from 0 to below 1")
    if isinstance(stages, bool) or not isinstance(stages, Integral) or stages < 1:
        raise InputError("stages", stages, "an integer of at least 1")


@dataclass(frozen=True, eq=False)
class CandidateRound:
    """A round of the path, from 1, and what would become of each image if it stopped there."""

    number: int
    n_features: int
    margins: np.ndarray
    harmed: np.ndarray
    expected: np.ndarray


def candidate_rounds(
    classifier: CompactClassifier, values: np.ndarray, labels: np.ndarray
) -> list[CandidateRound]:
    """Return the rounds at which images may stop; the last of the path is not among them."""
    numbers = true_numbers(labels, values, classifier.classes_)

    def scores_of(t: int) -> np.ndarray:
        step = classifier.path[t - 1]
        return values[:, : step.n_features] @ step.weights.T + step.intercept

    last = len(classifier.path)
    right_at_last = np.argmax(scores_of(last), axis=1) == numbers
    tried = np.unique(np.geomspace(1, max(last - 1, 1), _CANDIDATES).round().astype(int))
    rounds = []
    for t in tried[tried < last].tolist():
        scores = scores_of(t)
        margins = score_margins(scores).astype(np.float64)
        harmed = right_at_last & (np.argmax(scores, axis=1) != numbers)
        expected = expected_harm(margins, harmed)
        rounds.append(
            CandidateRound(t, classifier.path[t - 1].n_features, margins, harmed, expected)
        )
    return rounds


def expected_harm(margins: np.ndarray, harmed: np.ndarray) -> np.ndarray:
    """Return each image's probability of harm, a logistic function of its margin."""
    from sklearn.linear_model import LogisticRegression

    m = len(harmed)
    n = int(harmed.sum())
    targets = np.where(harmed, (n + 1) / (n + 2), 1 / (m - n + 2))
    scale = float(margins.std()) or 1.0
    x = np.tile(margins / scale, 2)[:, None]
    weights = np.concatenate([targets, 1 - targets])
    model = LogisticRegression(C=1e6, max_iter=1000)
    model.fit(x, np.repeat([1, 0], m), weights)
    # If harm increased with the margin by chance, the margin does not predict it.
    if model.coef_[0, 0] > 0:
        return np.full(m, targets.mean())
    return np.asarray(model.predict_proba(x[:m])[:, 1])


def planner(
    classifier: CompactClassifier, candidates: Sequence[CandidateRound], n_images: int
) -> Callable[[Sequence[int]], ExitPlan]:
    """Return a function that plans to stop at some of the candidates, given by ascending index."""

    @cache
    def macs(start: int, stop: int) -> int:
        return int(classifier.family.take(np.arange(start, stop)).macs())

    def plan_of(indices: Sequence[int]) -> ExitPlan:
        rounds = [candidates[i] for i in indices]
        ends = [0, *(one.n_features for one in rounds), classifier.path[-1].n_features]
        k = len(classifier.classes)
        costs = [macs(start, stop) + k * stop for start, stop in pairwise(ends)]
        return ExitPlan(rounds, np.cumsum(costs, dtype=np.float64), n_images)

    return plan_of


@dataclass(frozen=True, eq=False)
class ExitPlan:
    """Rounds at which images may stop, ascending, and the multiply-accumulates of each stop."""

    rounds: Sequence[CandidateRound]
    costs: np.ndarray
    n_images: int

    def stops(self, margins: Sequence[float]) -> np.ndarray:
        """Return the index in ``rounds`` where each image stops; ``len(rounds)`` for never."""
        stops = np.full(self.n_images, len(self.rounds))
        for i in reversed(range(len(self.rounds))):
            stops[self.rounds[i].margins >= margins[i]] = i
        return stops

    def mean_cost(self, margins: Sequence[float]) -> float:
        """Return the mean multiply-accumulates per image."""
        return float(self.costs[self.stops(margins)].mean())

    def best_margins(self, tolerance: float) -> list[float]:
        """Return margins of least cost that harm at most a fraction of the images."""
        best = [np.inf] * len(self.rounds)
        least = np.inf
        low = 0.0
        high = _LARGEST_PRICE
        for _ in range(_PRICES):
            price = (low + high) / 2
            margins = self._descend(self.costs[-1] * 2.0**price)
            stops = self.stops(margins)
            if self._harm(stops) > tolerance * self.n_images:
                low = price
                continue
            high = price
            cost = float(self.costs[stops].mean())
            if cost < least:
                best = margins
                least = cost
        return best

    def _harm(self, stops: np.ndarray) -> float:
        """Return the number of harmed images, counted or expected, whichever is larger."""
        counted = expected = 0.0
        for i, one in enumerate(self.rounds):
            counted += float(one.harmed[stops == i].sum())
            expected += float(one.expected[stops == i].sum())
        return max(counted, expected)

    def _descend(self, price: float) -> list[float]:
        """Return margins of which each is the best one given the others."""
        margins = [np.inf] * len(self.rounds)
        for _ in range(_SWEEPS):
            before = list(margins)
            for i in reversed(range(len(self.rounds))):
                margins[i] = self.best_margin(i, margins, price)
            if margins == before:
                break
        return margins

    def best_margin(self, stage: int, margins: Sequence[float], price: float) -> float:
        """Return the margin of one round that minimizes costs and priced harm, given the others."""
        current = self.rounds[stage]
        others = list(margins)
        others[stage] = np.inf
        stops = self.stops(others)
        # 1) What each image that comes so far would save by stopping here, the surest first.
        order = np.argsort(-current.margins, kind="stable")
        images = order[stops[order] > stage]
        if len(images) == 0:
            return float("inf")
        later = self.costs[stops[images]]
        for i in range(stage + 1, len(self.rounds)):
            stop_there = stops[images] == i
            later[stop_there] += price * self.rounds[i].expected[images[stop_there]]
        gain = later - self.costs[stage] - price * current.expected[images]
        # 2) The threshold that separates the best prefix; none separates equal margins.
        margin = current.margins[images]
        total = np.cumsum(gain)
        total[:-1][margin[:-1] == margin[1:]] = -np.inf
        last = int(np.argmax(total))
        if not total[last] > 0:
            return float("inf")
        below = margin[last + 1] if last + 1 < len(images) else 0.0
        return float((margin[last] + below) / 2)
