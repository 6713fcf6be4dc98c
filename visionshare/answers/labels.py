"""Several labels: the classes whose own probability reaches a threshold of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.scores import sigmoid


@dataclass(frozen=True)
class LabelRule:
    """The labels of an image: those whose probability reaches their threshold.

    Attributes
    ----------
    labels : tuple of str
        The classes of the classifier.
    thresholds : tuple of float

    Examples
    --------
    >>> rule = LabelRule(("cat", "dog"), (0.5, 0.3))
    >>> rule.said(np.array([[0.6, 0.4], [0.1, 0.2]])).tolist()
    ['cat;dog', '']
    """

    labels: tuple[str, ...]
    thresholds: tuple[float, ...]

    @staticmethod
    def of(labels: Sequence[str], truth: np.ndarray, argument: str = "y") -> LabelRule:
        """Return a rule whose thresholds are 1/2; check that each label tells images apart."""
        if len(labels) < 2:
            given = f"{len(labels)} label" if labels else "no label"
            raise InputError(argument, given, "two labels or more; one alone is a class")
        for label, shares in zip(labels, truth.mean(axis=0), strict=True):
            if shares in (0, 1):
                given = f"{label!r} in {'all' if shares else 'no'} training images"
                raise InputError(argument, given, "labels that some images have and others not")
        return LabelRule(tuple(labels), (0.5,) * len(labels))

    def check(self, k: int) -> None:
        """Check the rule against the number of a classifier's classes."""
        within = all(0 <= threshold <= 1 for threshold in self.thresholds)
        if len(self.labels) != k or len(self.thresholds) != k or not within:
            raise InputError("answer.thresholds", self.thresholds, f"{k} numbers from 0 to 1")

    @property
    def classes(self) -> np.ndarray:
        """The classes of a classifier that says several labels."""
        return np.array(self.labels)

    def has(self, probabilities: np.ndarray) -> np.ndarray:
        """Return which labels each image has, (n, k)."""
        return np.asarray(probabilities >= np.array(self.thresholds))

    def said(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the labels of each image (n,) as a text: "cat;dog", and "" for none."""
        has = self.has(probabilities)
        return np.array([";".join(self.classes[row].tolist()) for row in has])

    def table(self, truth: np.ndarray) -> np.ndarray:
        """Return the probabilities that are learned, (n, k)."""
        return truth.astype(np.float32)

    def numbers(self, truth: np.ndarray) -> np.ndarray:
        """Return the rarest label of each image, and k for none, by which splits are stratified."""
        counts = truth.sum(axis=0)
        rarity = np.where(truth, counts, len(truth) + 1)
        return np.where(truth.any(axis=1), rarity.argmin(axis=1), truth.shape[1])

    def probabilities(self, scores: np.ndarray, temperature: float) -> np.ndarray:
        """Return the probability of each label (n, k)."""
        return sigmoid(scores / temperature)

    def fitted(self, scores: np.ndarray, truth: np.ndarray) -> LabelRule:
        """Return the rule with the thresholds of the largest F1 on held-out images."""
        chosen = []
        for has, p in zip(truth.T, sigmoid(scores).T, strict=True):
            order = np.argsort(-p, kind="stable")
            found = np.cumsum(has[order])
            f1 = 2 * found / (np.arange(1, len(p) + 1) + max(1, has.sum()))
            best = int(f1.argmax())
            # Between the last image that gets the label and the next.
            after = p[order[min(best + 1, len(p) - 1)]]
            chosen.append(float((p[order[best]] + after) / 2) if has.any() else 0.5)
        return LabelRule(self.labels, tuple(chosen))

    def judged(
        self, scores: np.ndarray, temperature: float, truth: np.ndarray
    ) -> tuple[float, float, np.ndarray]:
        """Return the temperature, 1 − mean average precision, and the doubts of each image.

        A doubt is 1 − the probability of what is true, where those with and without a label count
        the same.
        """
        rate = np.clip(truth.mean(axis=0), 1e-6, 1 - 1e-6)
        weights = np.where(truth, 0.5 / rate, 0.5 / (1 - rate))
        doubts = (weights * np.abs(truth - sigmoid(scores / temperature))).mean(axis=1)
        return temperature, 1 - float(np.nanmean(self.average_precisions(scores, truth))), doubts

    def average_precisions(self, scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Return the average precision of each label, NaN where no image has it."""
        from sklearn.metrics import average_precision_score

        pairs = zip(truth.T, scores.T, strict=True)
        return np.array([average_precision_score(t, s) if t.any() else np.nan for t, s in pairs])

    def score(self, said: np.ndarray, truth: Any) -> float:
        """Return the fraction of images all of whose labels are right, given as texts "cat;dog"."""
        split = (set(filter(None, str(text).split(";"))) for text in truth)
        found = (set(filter(None, text.split(";"))) for text in said.tolist())
        return float(np.mean([a == b for a, b in zip(split, found, strict=True)]))

    def to_values(self) -> dict[str, Any]:
        """Return plain values that a file holds."""
        labels = list(self.labels)
        thresholds = list(self.thresholds)
        return {"kind": "labels", "labels": labels, "thresholds": thresholds}
