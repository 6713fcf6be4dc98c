"""Early exit: the rule that says when the scores of a prefix of the path are far enough apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real

import numpy as np

from visionshare.class_labels import numbers_of
from visionshare.errors import InputError


@dataclass(frozen=True)
class ExitRule:
    """After which rounds an image may stop, and how far apart its two best scores must be.

    Attributes
    ----------
    rounds : tuple of int
        Rounds of the learning path, ascending; the last round of all is not among them.
    margins : tuple of float
        Of each: an image stops there if its best score is ahead of the second by at least this.

    Raises
    ------
    InputError
        If the rounds are not ascending integers from 1, or there is not a margin for each.

    Examples
    --------
    >>> ExitRule(rounds=(4, 9), margins=(6.5, 4.25)).rounds
    (4, 9)
    """

    rounds: tuple[int, ...]
    margins: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the rule without a classifier."""
        integers = all(isinstance(t, Integral) and not isinstance(t, bool) for t in self.rounds)
        if not integers or any(t < 1 for t in self.rounds):
            raise InputError("rounds", self.rounds, "rounds of the path, from 1")
        if any(a >= b for a, b in pairwise(self.rounds)):
            raise InputError("rounds", self.rounds, "rounds in ascending order")
        finite = all(isinstance(m, Real) and 0 <= float(m) < np.inf for m in self.margins)
        if len(self.margins) != len(self.rounds) or not finite:
            raise InputError("margins", self.margins, "a finite number of at least 0 per round")


def score_margins(scores: np.ndarray) -> np.ndarray:
    """Return how far the best score of each row is ahead of the second."""
    best = np.partition(scores, scores.shape[1] - 2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


def true_numbers(labels: np.ndarray, images: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each image's class."""
    if np.shape(labels) != (len(images),) or len(images) == 0:
        accepted = f"a class for each of {len(images)} images, 1 or more"
        raise InputError("labels", np.shape(labels), accepted)
    return numbers_of(labels, classes)


def check_rule(rule: ExitRule, rounds: int) -> None:
    """Check that a rule's rounds are among those of a path, before its last."""
    if rule.rounds and rule.rounds[-1] >= rounds:
        accepted = f"rounds below the last of {rounds} in the path"
        raise InputError("rounds", rule.rounds, accepted)
