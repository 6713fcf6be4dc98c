"""From scores to classes, probabilities, steps of a path and compact classifiers.

Scores are (m, k), or (m, 1) for two classes: above 0 is the second. Weights are (k, n) or (1, n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.scores import flat_scores, predict_labels, softmax, two_sided

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = [
    "ScoreClassifier",
    "compact_classifier",
    "joined",
    "path_step",
]


def joined(
    ids: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return one support for tasks that chose their own columns, and weights (T, n) on it.

    Examples
    --------
    >>> ids, weights = [np.array([7, 2]), np.array([2])], [np.array([1.0, 2.0]), np.array([3.0])]
    >>> support, W = joined(ids, weights)
    >>> support.tolist(), W.tolist()
    ([7, 2], [[1.0, 2.0], [0.0, 3.0]])
    """
    entered = np.concatenate([np.empty(0, np.int64), *ids]).astype(np.int64)
    _, first = np.unique(entered, return_index=True)
    support = entered[np.sort(first)]
    place = {int(j): i for i, j in enumerate(support)}
    W = np.zeros((len(ids), len(support)))
    for t, (chosen, values) in enumerate(zip(ids, weights, strict=True)):
        W[t, [place[int(j)] for j in chosen]] = values
    return support, W


def compact_classifier(
    learner: Any,
    family: Any,
    classes: Sequence[Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> CompactClassifier:
    """Return the compact classifier of a fitted learner: its features of a family, its weights.

    Parameters
    ----------
    learner : estimator
        With ``support_``, ``coef_``, ``intercept_``, ``classes_``, ``temperature_``, ``path_``.
    family : FeatureFamily
        The fitted family whose columns were learned from.
    classes : sequence, optional
        Names for ``classes_``, in that order.
    metadata : dict, optional
        Plain values to keep in the file.

    Raises
    ------
    InputError
        If no feature was chosen.
    """
    from visionshare.classifier import CompactClassifier

    check_is_fitted(learner)
    if len(learner.support_) == 0:
        raise InputError("support_", "empty", "a learner that chose a feature")
    return CompactClassifier(
        family.take(learner.support_),
        two_sided(learner.coef_.T).T.astype(np.float32),
        two_sided(learner.intercept_[None])[0].astype(np.float32),
        learner.classes_ if classes is None else np.asarray(classes),
        temperature=learner.temperature_,
        path=learner.path_,
        metadata=metadata or {},
    )


def path_step(
    held: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    y: np.ndarray,
    omega: np.ndarray,
    **known: Any,
) -> PathStep:
    """Return a step of a path with its weights and its training error.

    Parameters
    ----------
    held : ndarray of shape (n, m)
        The step's columns as they are, one a row.
    coef, intercept : ndarray of shape (T, n) and (T,)
    y : ndarray of int, shape (m,)
        Class indexes.
    omega : ndarray of shape (m,)
    **known
        The other values of :class:`PathStep`; ``macs`` without the weights.
    """
    scores = held.T @ coef.T + intercept
    wrong = predict_labels(np.arange(max(2, len(coef))), scores) != y
    weights = two_sided(coef.T).T
    known["macs"] += weights.size
    return PathStep(
        n_features=coef.shape[1],
        weights=weights.astype(np.float32),
        intercept=two_sided(intercept[None])[0].astype(np.float32),
        train_error=float(np.dot(wrong, omega) / omega.sum()),
        validation_error=None,
        test_error=None,
        **known,
    )


class ScoreClassifier(ClassifierMixin):
    """Classes, probabilities and the compact classifier of a learner that has ``_scores``."""

    classes_: np.ndarray
    temperature_: float
    _scores: Callable[..., np.ndarray]

    def decision_function(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return scores (m, k); for two classes, as in scikit-learn, one an example (m,)."""
        return flat_scores(self._scores(X))

    def predict(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return the class of each example."""
        scores = self._scores(X)
        return predict_labels(self.classes_, scores)

    def predict_proba(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return probabilities (m, k), the softmax of scores / ``temperature_``."""
        scores = self._scores(X)
        return softmax(scores, self.temperature_)

    def to_classifier(
        self,
        family: Any,
        classes: Sequence[Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier, see :func:`compact_classifier`.

        Raises
        ------
        InputError
            If no feature was chosen.
        """
        return compact_classifier(self, family, classes, metadata)
