"""What a classifier answers instead of one class: a value, or several labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from visionshare.answers.labels import LabelRule
from visionshare.answers.values import ValueRule, checked_period, checked_values
from visionshare.errors import InputError

__all__ = [
    "Answers", "LabelRule", "Rule", "ValueRule", "checked_period", "checked_values",
    "rule_from_values",
]  # fmt: skip

#: How a classifier says what is no class.
Rule: TypeAlias = ValueRule | LabelRule


@dataclass(frozen=True, eq=False)
class Answers:
    """What training images show, and how a classifier says it.

    Attributes
    ----------
    truth : ndarray of shape (n,) or (n, k)
        Values; or which labels each image has.
    rule : ValueRule or LabelRule
    """

    truth: np.ndarray
    rule: Rule

    def subset(self, ids: np.ndarray | slice | Sequence[int]) -> Answers:
        """Return those of some images."""
        return Answers(self.truth[ids], self.rule)

    def joined(self, others: Sequence[Answers]) -> Answers:
        """Return these and, after them, others of the same rule."""
        return Answers(np.concatenate([self.truth, *(one.truth for one in others)]), self.rule)

    def table(self) -> np.ndarray:
        """Return the probabilities of the classes that are learned, (n, k)."""
        return self.rule.table(self.truth)


def rule_from_values(values: Any) -> Rule | None:
    """Return the rule that a file describes; None for None."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        kind = values.get("kind")
        names = set(values)
        if kind == "labels" and names == {"kind", "labels", "thresholds"}:
            thresholds = tuple(map(float, values["thresholds"]))
            return LabelRule(tuple(map(str, values["labels"])), thresholds)
        if kind == "value" and names == {"kind", "levels", "period"}:
            return ValueRule(tuple(map(float, values["levels"])), values["period"])
    raise InputError("answer", values, "a table of levels and period, or of labels and thresholds")
