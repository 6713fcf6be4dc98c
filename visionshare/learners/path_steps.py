"""The learner's path, as what a compact classifier carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.learners.greedy import Round

__all__ = ["path_steps", "unscaled"]


def path_steps(columns: Columns, history: Sequence[Round]) -> tuple[PathStep, ...]:
    """Return rounds with the weights of unscaled columns, and what each prefix costs."""
    steps, support, seconds = [], np.empty(0, np.int64), 0.0
    for r in history:
        support = np.concatenate([support, r.features])
        seconds += r.seconds
        weights, intercept = unscaled(r.W, columns, support)
        steps.append(
            PathStep(
                round=r.number,
                feature=tuple(int(j) for j in r.features),
                n_features=len(support),
                weights=weights.astype(np.float32),
                intercept=intercept.astype(np.float32),
                loss=r.loss,
                train_error=r.train_error,
                validation_error=None if np.isnan(r.validation_error) else r.validation_error,
                test_error=None,
                seconds=seconds,
                macs=(columns.macs(support) or 0) + weights.size,
                score=r.score,
            )
        )
    return tuple(steps)


def unscaled(W: np.ndarray, columns: Columns, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and intercepts of unscaled columns."""
    offset, scale = columns.scaling_of(support)
    weights = W[:, 1:] * scale
    return weights, W[:, 0] - weights @ offset
