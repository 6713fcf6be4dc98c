"""Margins for given rounds: what stopping at them saves and whom it harms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["CandidateRound", "ExitPlan", "expected_harm"]

_SWEEPS = 8
_PRICES = 16
_LARGEST_PRICE = 60.0


@dataclass(frozen=True, eq=False)
class CandidateRound:
    """What would become of each image if it stopped at a round."""

    number: int
    n_features: int
    margins: np.ndarray
    harmed: np.ndarray

    @cached_property
    def expected(self) -> np.ndarray:
        """Each image's probability of harm, (m,), see :func:`expected_harm`."""
        return expected_harm(self.margins, self.harmed)

    @cached_property
    def order(self) -> np.ndarray:
        """Indices of the images, (m,), the largest margin first."""
        return np.argsort(-self.margins, kind="stable")


def expected_harm(margins: np.ndarray, harmed: np.ndarray) -> np.ndarray:
    """Return each image's probability of harm, a logistic function of its margin."""
    from sklearn.linear_model import LogisticRegression

    m, n = len(harmed), int(harmed.sum())
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


@dataclass(frozen=True, eq=False)
class ExitPlan:
    """Rounds at which images may stop, and what it costs to stop at each."""

    rounds: tuple[CandidateRound, ...]
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
        """Return the cheapest margins whose expected and counted harm is within a tolerance."""
        best, least = [np.inf] * len(self.rounds), np.inf
        low, high = 0.0, _LARGEST_PRICE
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
                best, least = margins, cost
        return best

    def _harm(self, stops: np.ndarray) -> float:
        """Return the number of harmed images, counted or expected, whichever is larger."""
        counted = sum(float(r.harmed[stops == i].sum()) for i, r in enumerate(self.rounds))
        expected = sum(float(r.expected[stops == i].sum()) for i, r in enumerate(self.rounds))
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
        """Return the best margin of one round given those of the others."""
        # It minimizes the sum of costs plus ``price`` times the expected harm.
        current = self.rounds[stage]
        others = [np.inf if i == stage else margin for i, margin in enumerate(margins)]
        stops = self.stops(others)
        images = current.order[stops[current.order] > stage]
        if len(images) == 0:
            return float("inf")
        later = self.costs[stops[images]]
        for i in range(stage + 1, len(self.rounds)):
            stop_there = stops[images] == i
            later[stop_there] += price * self.rounds[i].expected[images[stop_there]]
        gain = later - self.costs[stage] - price * current.expected[images]
        # Gains are summed from the largest margin down.
        margin, total = current.margins[images], np.cumsum(gain)
        # No threshold separates two images of the same margin.
        total[:-1][margin[:-1] == margin[1:]] = -np.inf
        last = int(np.argmax(total))
        if not total[last] > 0:
            return float("inf")
        below = margin[last + 1] if last + 1 < len(images) else 0.0
        return float((margin[last] + below) / 2)
