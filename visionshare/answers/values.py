"""Values: learned as probabilities of levels, which are the classes; the answer is their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.scores import softmax

# Levels at most, and examples for each at least.
_MOST_LEVELS = 64
_PER_LEVEL = 3
# A value is between two levels; what is learned reaches so many levels farther, to either side.
_SPREAD = 2
_SHARE = 0.5
# Of arcs that are wider fractions of a period, chords say too little.
_WIDE = 1 / 8
# Times the temperature of probabilities, the one that fits them first.
_TEMPERATURES = 2.0 ** (np.array([0, *range(-8, 0), *range(1, 9)]) / 2)


@dataclass(frozen=True)
class ValueRule:
    """The value of an image: the mean of levels, weighted by their probabilities.

    Attributes
    ----------
    levels : tuple of float
        Ascending; the classes of the classifier.
    period : float, optional
        Values that differ by it are the same, as 0° and 360° are: the mean is then that of sines
        and cosines.

    Examples
    --------
    >>> hours = ValueRule((0.0, 3.0, 6.0, 9.0), period=12.0)
    >>> hours.said(np.array([[0.5, 0.0, 0.0, 0.5]])).round(6).tolist()
    [10.5]
    """

    levels: tuple[float, ...]
    period: float | None = None

    @staticmethod
    def of(values: np.ndarray, period: float | None = None, argument: str = "y") -> ValueRule:
        """Return levels that lie close where values do, half of them spread evenly."""
        distinct, counts = np.unique(values, return_counts=True)
        if len(distinct) < 2:
            given = f"the value {distinct[0]:g} alone"
            raise InputError(argument, given, "two different values or more")
        n_levels = int(np.clip(len(values) // _PER_LEVEL, 2, _MOST_LEVELS))
        if len(distinct) > n_levels:
            ranks = (np.cumsum(counts) - counts[0]) / (len(values) - counts[0])
            heights = (distinct - distinct[0]) / (distinct[-1] - distinct[0])
            wanted = np.linspace(0, 1, n_levels)
            # Each level is a value, so that every class has an image.
            nearest = np.abs((ranks + heights) / 2 - wanted[:, None]).argmin(axis=1)
            distinct = distinct[np.unique(nearest)]
        return ValueRule(tuple(distinct.tolist()), period)

    def check(self, k: int) -> None:
        """Check the rule against the number of a classifier's classes."""
        levels = np.asarray(self.levels, np.float64)
        ascend = levels.shape == (k,) and np.isfinite(levels).all() and (np.diff(levels) > 0).all()
        if not ascend:
            raise InputError("answer.levels", self.levels, f"{k} finite numbers that ascend")
        checked_period(self.period, "answer.period")

    @property
    def classes(self) -> np.ndarray:
        """The classes of a classifier that says values."""
        return np.asarray(self.levels, np.float64)

    def said(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the value of each image (n,), of probabilities (n, k)."""
        if self.period is None:
            return np.asarray(probabilities @ self.classes)
        turn = 2 * np.pi / self.period
        angles = self.classes * turn
        sines = probabilities @ np.sin(angles)
        cosines = probabilities @ np.cos(angles)
        return np.asarray(np.arctan2(sines, cosines) / turn % self.period)

    def errors(self, said: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Return by how much values are too large, (n,); around a period by half of it at most."""
        off = np.asarray(said, np.float64) - truth
        if self.period is None:
            return off
        return np.asarray((off + self.period / 2) % self.period - self.period / 2)

    def table(self, values: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, k) of levels that are learned: their means are the values.

        A value between two levels is a mixture of both. Each level then gives a part of its
        probability to its neighbors, so that the mean stays: near levels are learned alike.
        """
        levels = self.classes
        k = len(levels)
        if self.period is not None:
            levels = np.append(levels, levels[0] + self.period)
            values = (values - levels[0]) % self.period + levels[0]
        # 1) The two levels of each value.
        place = np.interp(values, levels, np.arange(len(levels)))
        lower = np.minimum(place.astype(np.int64), len(levels) - 2)
        table = np.zeros((len(values), len(levels)))
        rows = np.arange(len(values))
        table[rows, lower] = lower + 1 - place
        table[rows, lower + 1] = place - lower
        # 2) What each level gives to its neighbors; the ends keep theirs, and those of wide arcs.
        gaps = np.diff(levels)
        spread = np.eye(k)
        inner = np.arange(1, k - 1)
        if self.period is not None:
            table[:, 0] += table[:, -1]
            table = table[:, :-1]
            narrow = gaps < self.period * _WIDE
            inner = np.flatnonzero(narrow & np.roll(narrow, 1))
        for j in inner:
            before = gaps[j - 1]
            after = gaps[j]
            part = _SHARE / (before + after)
            spread[j, j] -= _SHARE
            spread[j, j - 1] += part * after
            spread[j, (j + 1) % k] += part * before
        return np.asarray(table @ np.linalg.matrix_power(spread, _SPREAD), np.float32)

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """Return the number of the level next to each value, (n,)."""
        away = np.abs(self.errors(self.classes, np.asarray(values)[:, None]))
        return np.asarray(away.argmin(axis=1), np.int64)

    def probabilities(self, scores: np.ndarray, temperature: float) -> np.ndarray:
        """Return the probabilities of the levels (n, k)."""
        return softmax(scores, temperature)

    def fitted(self, scores: np.ndarray, truth: np.ndarray) -> ValueRule:
        """Return the rule after held-out images were seen: the same."""
        return self

    def judged(
        self, scores: np.ndarray, temperature: float, truth: np.ndarray
    ) -> tuple[float, float, np.ndarray]:
        """Return the temperature with the least errors, their mean, and that of each image.

        Errors are how far values are off, as a fraction of what a constant is. The temperature of
        the probabilities is where the search for the best one begins.
        """
        # The mean of a colder distribution is nearer to its mode: less of what is confused counts.
        found = [
            (np.abs(self.errors(self.said(softmax(scores, t)), truth)), t)
            for t in temperature * _TEMPERATURES
        ]
        each, temperature = min(found, key=lambda pair: float(pair[0].mean()))
        constant = float(np.abs(self.errors(self._center(truth), truth)).mean())
        each /= max(constant, np.finfo(np.float64).tiny)
        return float(temperature), float(each.mean()), each

    def score(self, said: np.ndarray, truth: Any) -> float:
        """Return R²: the share of the values' squared distances that is explained."""
        values = checked_values(truth, self.period)
        center = values.mean() if self.period is None else self._center(values)
        total = np.square(self.errors(center, values)).sum()
        left = np.square(self.errors(said, values)).sum()
        return float(1 - left / total) if total > 0 else float(left == 0)

    def mean_errors(
        self, said: np.ndarray, truth: np.ndarray, n_draws: int = 1000
    ) -> tuple[float, tuple[float, float], float]:
        """Return the mean absolute error, its 95 % interval (bootstrap), and that of a constant."""
        off = np.abs(self.errors(said, truth))
        rng = np.random.default_rng(0)
        means = [off[rng.integers(0, len(off), len(off))].mean() for _ in range(n_draws)]
        low, high = np.percentile(means, [2.5, 97.5])
        constant = np.abs(self.errors(self._center(truth), truth)).mean()
        return float(off.mean()), (float(low), float(high)), float(constant)

    def _center(self, truth: np.ndarray) -> np.ndarray:
        """Return the median; around a period the direction of the mean."""
        if self.period is None:
            return np.asarray(np.median(truth))
        return self.said(self.table(truth).mean(axis=0, keepdims=True))

    def to_values(self) -> dict[str, Any]:
        """Return plain values that a file holds."""
        return {"kind": "value", "levels": list(self.levels), "period": self.period}


def checked_period(period: Any, argument: str = "period") -> float | None:
    """Return a period, checked."""
    is_number = isinstance(period, (int, float)) and not isinstance(period, bool)
    if period is None or (is_number and 0 < period < np.inf):
        return None if period is None else float(period)
    raise InputError(argument, period, "a number above 0, such as 360 for degrees, or None")


def checked_values(y: Any, period: float | None = None) -> np.ndarray:
    """Return values (n,) as float64, those of a period from 0 on; check that they are numbers."""
    accepted = "finite numbers, one for each image"
    if y is None:
        raise InputError("y", None, accepted)
    given = np.asarray(y)
    if given.ndim != 1 or given.dtype.kind not in "biufO":
        raise InputError("y", f"{given.dtype} of shape {given.shape}", accepted)
    try:
        values = given.astype(np.float64)
    except (TypeError, ValueError):
        wrong = next(value for value in given.tolist() if not isinstance(value, (int, float)))
        raise InputError("y", wrong, accepted) from None
    if not np.isfinite(values).all():
        raise InputError("y", float(values[~np.isfinite(values)][0]), accepted)
    return values if period is None else values % period
