"""Coverage: how far down the list of scores the true class is (Duchi and Singer, §6)."""

from __future__ import annotations

import numpy as np


def ranks(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the position of each example's true class in its sorted scores, 0 where it is right.

    Among equal scores the class of the lower index comes first, as it does in a prediction.
    """
    Z = np.asarray(scores, np.float64)
    if Z.ndim == 1:
        # One score for two classes: the second is predicted where it is above 0.
        Z = np.column_stack([np.zeros(len(Z)), Z])
    true = Z[np.arange(len(y)), y][:, None]
    before = np.arange(Z.shape[1]) < y[:, None]
    return np.asarray(np.sum((true < Z) | ((true == Z) & before), axis=1))


def coverage(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the mean position of the true class; 0 is perfect, k − 1 the worst."""
    return float(ranks(scores, y).mean())
