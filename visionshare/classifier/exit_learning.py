"""Where images may stop early, learned on images that taught nothing."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from visionshare.classifier.exit_rule import ExitRule, score_margins
from visionshare.errors import InputError
from visionshare.scores import predict_labels

if TYPE_CHECKING:
    from visionshare.classifier.compact import CompactClassifier

__all__ = ["check_exit_options", "expected_harm", "learn_exit_rule"]

_CANDIDATES = 24
_SWEEPS = 8
_PRICES = 16


def learn_exit_rule(
    classifier: CompactClassifier,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    tolerance: float = 5e-4,
    stages: int = 6,
    n_jobs: int = 1,
) -> ExitRule:
    """Learn where images may stop, so that few that the whole classifier has right become wrong.

    After each round the probability of that harm is a logistic function of the margin, fitted to
    the images with Platt's targets: counted harm alone is 0 beyond the last harmed image, and
    margins that lie there promise more than they keep. Of the rounds of the path at most
    ``stages`` are chosen, one after the other: the one that saves most multiply-accumulates. For
    a price of an error the margin of each is the best one given the others; the least price that
    keeps both the expected and the counted harm within the tolerance is taken.

    Parameters
    ----------
    classifier : CompactClassifier
        With a learning path.
    images : ndarray of shape (m, *image_shape)
        Images that did not teach the classifier: the margins of those that did are too large.
    labels : ndarray of shape (m,)
        Their classes.
    tolerance : float, default 5e-4
        Share of the images that may become wrong. Those that become right are not set off. With
        0 no image stops: no finite number of images shows that none would be harmed.
    stages : int, default 6
        Rounds at which images may stop, at most.
    n_jobs : int, default 1
        Threads; the rule does not depend on it.

    Returns
    -------
    ExitRule
        Without a round where no round saves anything.

    Raises
    ------
    InputError
        If the classifier has no path or an argument is out of range.

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
    labels = np.asarray(labels)
    if labels.shape != (len(images),) or len(images) == 0:
        raise InputError("labels", labels.shape, f"a class for each of {len(images)} images, 1 up")
    if not classifier.path:
        raise InputError("classifier", "no learning path", "a classifier that keeps its path")
    problem = _Problem(classifier, images, labels, n_jobs)
    chosen: list[int] = []
    margins: list[float] = []
    cost = problem.cost([], [])
    while len(chosen) < stages:
        trials = []
        for candidate in range(len(problem.rounds)):
            if candidate not in chosen:
                held = sorted([*chosen, candidate])
                found = problem.best(held, float(tolerance))
                trials.append((problem.cost(held, found), held, found))
        if not trials:
            break
        least, held, found = min(trials, key=lambda trial: (trial[0], trial[1]))
        if not least < cost:
            break
        cost, chosen, margins = least, held, found
    used = [(problem.rounds[s], m) for s, m in zip(chosen, margins, strict=True) if m < np.inf]
    return ExitRule(tuple(t for t, _ in used), tuple(m for _, m in used))


def check_exit_options(tolerance: float, stages: int) -> None:
    """Check the options of :func:`learn_exit_rule` without images.

    Raises
    ------
    InputError
        If one is out of range.
    """
    if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < 1:
        raise InputError("tolerance", tolerance, "a fraction from 0 to below 1")
    if isinstance(stages, bool) or not isinstance(stages, Integral) or stages < 1:
        raise InputError("stages", stages, "a whole number of at least 1")


def expected_harm(margins: np.ndarray, harmed: np.ndarray) -> np.ndarray:
    """Return each image's probability of harm, a logistic function of its margin.

    Parameters
    ----------
    margins : ndarray of shape (m,)
    harmed : ndarray of bool, shape (m,)

    Examples
    --------
    >>> margins = np.arange(100.0)
    >>> p = expected_harm(margins, margins < 5)
    >>> bool(p[0] > 4 * p[20] > 40 * p[60])
    True
    """
    from sklearn.linear_model import LogisticRegression

    m, n = len(harmed), int(harmed.sum())
    targets = np.where(harmed, (n + 1) / (n + 2), 1 / (m - n + 2))
    scale = float(margins.std()) or 1.0
    x = np.tile(margins / scale, 2)[:, None]
    weights = np.concatenate([targets, 1 - targets])
    model = LogisticRegression(C=1e6, max_iter=1000)
    model.fit(x, np.repeat([1, 0], m), weights)
    # Where harm grew with the margin by chance, no margin tells it.
    if model.coef_[0, 0] > 0:
        return np.full(m, targets.mean())
    return np.asarray(model.predict_proba(x[:m])[:, 1])


class _Problem:
    """Margins and harm of every image at candidate rounds, and what the rounds cost."""

    def __init__(
        self, classifier: CompactClassifier, images: np.ndarray, labels: np.ndarray, n_jobs: int
    ) -> None:
        path, family = classifier.path, classifier.family
        last = len(path)
        spread = np.geomspace(1, max(last - 1, 1), _CANDIDATES).round().astype(int)
        self.rounds = [int(t) for t in np.unique(spread) if t < last]
        values = family.transform(images, None, n_jobs)
        wrong_at_last = self._wrong(classifier, values, labels, last)[0]
        self.margins, self.harm, self.expected = [], [], []
        for t in self.rounds:
            wrong, scores = self._wrong(classifier, values, labels, t)
            self.margins.append(score_margins(scores).astype(np.float64))
            self.harm.append(wrong & ~wrong_at_last)
            self.expected.append(expected_harm(self.margins[-1], self.harm[-1]))
        self.order = [np.argsort(-margins, kind="stable") for margins in self.margins]
        self.path, self.family, self.k = path, family, len(classifier.classes_)
        self.m = len(labels)
        self._features: dict[tuple[int, int], int] = {}

    @staticmethod
    def _wrong(
        classifier: CompactClassifier, values: np.ndarray, labels: np.ndarray, t: int
    ) -> tuple[np.ndarray, np.ndarray]:
        step = classifier.path[t - 1]
        scores = values[:, : step.n_features] @ step.weights.T + step.intercept
        return predict_labels(classifier.classes_, scores) != labels, scores

    def costs(self, chosen: list[int]) -> np.ndarray:
        """Return the multiply-accumulates of an image that stops at each chosen round, or never."""
        ends = [0, *(self.path[self.rounds[s] - 1].n_features for s in chosen)]
        ends.append(self.path[-1].n_features)
        steps = [self._macs(a, b) + self.k * b for a, b in pairwise(ends)]
        return np.cumsum(steps, dtype=np.float64)

    def _macs(self, a: int, b: int) -> int:
        if (a, b) not in self._features:
            self._features[a, b] = int(self.family.take(np.arange(a, b)).macs())
        return self._features[a, b]

    def stops(self, chosen: list[int], margins: list[float]) -> np.ndarray:
        """Return the place in ``chosen`` where each image stops; past its end: never."""
        place = np.full(self.m, len(chosen))
        for i in reversed(range(len(chosen))):
            place[self.margins[chosen[i]] >= margins[i]] = i
        return place

    def cost(self, chosen: list[int], margins: list[float]) -> float:
        """Return the mean multiply-accumulates of an image."""
        return float(self.costs(chosen)[self.stops(chosen, margins)].mean())

    def best(self, chosen: list[int], tolerance: float) -> list[float]:
        """Return margins of least cost whose harm is within the tolerance."""
        costs = self.costs(chosen)
        best, least = [np.inf] * len(chosen), np.inf
        low, high = 0.0, 60.0
        for _ in range(_PRICES):
            price = (low + high) / 2
            margins = self._descend(chosen, costs, costs[-1] * 2.0**price)
            stops = self.stops(chosen, margins)
            harms = [
                sum(float(harm[s][stops == i].sum()) for i, s in enumerate(chosen))
                for harm in (self.harm, self.expected)
            ]
            if max(harms) > tolerance * self.m:
                low = price
                continue
            high = price
            cost = float(costs[stops].mean())
            if cost < least:
                best, least = margins, cost
        return best

    def _descend(self, chosen: list[int], costs: np.ndarray, price: float) -> list[float]:
        """Return margins of which each is the best one given the others."""
        margins = [np.inf] * len(chosen)
        for _ in range(_SWEEPS):
            before = list(margins)
            for i in reversed(range(len(chosen))):
                margins[i] = self._margin(chosen, margins, i, costs, price)
            if margins == before:
                break
        return margins

    def _margin(
        self, chosen: list[int], margins: list[float], i: int, costs: np.ndarray, price: float
    ) -> float:
        """Return the best margin of one stage: gains are summed from the largest margin down."""
        others = [np.inf if j == i else margin for j, margin in enumerate(margins)]
        stops = self.stops(chosen, others)
        here = self.order[chosen[i]]
        here = here[stops[here] > i]
        if len(here) == 0:
            return float("inf")
        later = costs[stops[here]]
        for j in range(i + 1, len(chosen)):
            place = stops[here] == j
            later[place] += price * self.expected[chosen[j]][here[place]]
        gain = later - costs[i] - price * self.expected[chosen[i]][here]
        margin, total = self.margins[chosen[i]][here], np.cumsum(gain)
        # A cut between two images of the same margin is none.
        total[:-1][margin[:-1] == margin[1:]] = -np.inf
        n = int(np.argmax(total))
        if not total[n] > 0:
            return float("inf")
        below = margin[n + 1] if n + 1 < len(here) else 0.0
        return float((margin[n] + below) / 2)
