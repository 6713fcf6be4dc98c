"""One step of a learning path: the classifier after a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PathStep:
    """The classifier after one round, with its errors and cost.

    Attributes
    ----------
    round : int
        From 1.
    feature : tuple of int
        Ids, in the pool, of the features that entered in this round.
    n_features : int
        Features after the round.
    weights : ndarray of shape (k, n_features), float32
        Weights of the unscaled features.
    intercept : ndarray of shape (k,), float32
    loss : float
        Training loss after the round.
    train_error : float
        Fraction of the training weight that is misclassified.
    validation_error, test_error : float or None
        The same on validation and test examples, where there are any.
    seconds : float
        Time since the first round began; files do not keep it, and it is 0 then.
    macs : int
        Multiply-accumulates per image.
    score : float
        The criterion of what entered.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> model = ShareBoost(rounds=3).fit(*load_digits(return_X_y=True))
    >>> [step.n_features for step in model.path_]
    [1, 2, 3]
    """

    round: int
    feature: tuple[int, ...]
    n_features: int
    weights: np.ndarray
    intercept: np.ndarray
    loss: float
    train_error: float
    validation_error: float | None
    test_error: float | None
    seconds: float
    macs: int
    score: float

    @classmethod
    def whole(
        cls,
        weights: np.ndarray,
        intercept: np.ndarray,
        family_macs: int,
        loss: float,
        train_error: float,
        validation_error: float | None,
        seconds: float,
    ) -> PathStep:
        """Return the only step of a classifier without prefixes: all features enter in it."""
        n = weights.shape[1]
        return cls(
            round=1,
            feature=tuple(range(n)),
            n_features=n,
            weights=weights,
            intercept=intercept,
            loss=loss,
            train_error=train_error,
            validation_error=validation_error,
            test_error=None,
            seconds=seconds,
            macs=family_macs + weights.size,
            score=0.0,
        )
