"""One ShareBoost per class against the rest: each class chooses features of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare import ShareBoost
from visionshare.columns import Columns


class Step(NamedTuple):
    """The joint classifier after a round of every class."""

    n_features: int
    weights: np.ndarray
    intercept: np.ndarray


class OneAgainstRest:
    """Features of all classes, in the order in which a class first took them, and a path.

    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §7.1.
    """

    def __init__(self, rounds: int, alpha: float) -> None:
        self.rounds = rounds
        self.alpha = alpha

    def fit(self, columns: Columns, y: np.ndarray) -> OneAgainstRest:
        """Learn a classifier of each class; y is 0 … k − 1."""
        models = [
            ShareBoost(self.rounds, alpha=self.alpha).fit(columns, y == c) for c in np.unique(y)
        ]
        position: dict[int, int] = {}
        steps = []
        for t in range(max(len(model.path_) for model in models)):
            for model in models:
                for j in model.path_[t].feature if t < len(model.path_) else ():
                    position.setdefault(int(j), len(position))
            weights = np.zeros((len(models), len(position)))
            intercept = np.zeros(len(models))
            for row, model in enumerate(models):
                step = model.path_[min(t, len(model.path_) - 1)]
                places = [position[int(j)] for j in model.support_[: step.n_features]]
                # A learner of two classes has a score for each: their difference decides.
                weights[row, places] = step.weights[1].astype(np.float64) - step.weights[0]
                intercept[row] = float(step.intercept[1]) - float(step.intercept[0])
            steps.append(Step(len(position), weights, intercept))
        self.support_ = np.array(list(position), np.int64)
        # Of rounds that brought no feature, the last counts.
        self.path_ = tuple({step.n_features: step for step in steps}.values())
        return self
