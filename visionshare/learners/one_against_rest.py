"""One against the rest: a greedy learner for each class alone, whose features add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from visionshare.classifier.path import PathStep
from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.preparation import chosen_columns, weights_of
from visionshare.learners.scores import ScoreClassifier, path_step
from visionshare.learners.shareboost import ShareBoost
from visionshare.scores import two_sided

if TYPE_CHECKING:
    pass

__all__ = ["OneAgainstRest"]


class OneAgainstRest(ScoreClassifier, BaseEstimator):
    """What ShareBoost is compared with: the same search and refit, one class at a time.

    Every class chooses features of its own to be told from the rest; the classifier has all of
    them, so that their number grows with the classes.

    Parameters
    ----------
    rounds : int, default 10
        Features, or groups of features, a class.
    learner : ShareBoost, optional
        Template for each class; its own ``rounds`` do not count.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    support_ : ndarray of int
        Features of all classes, by the round in which the first class took them.
    coef_ : ndarray of shape (T, n_support), float64
        T is 1 for two classes, else k.
    intercept_ : ndarray of shape (T,), float64
    learners_ : list of ShareBoost
    path_ : tuple of PathStep
        After each round of all classes that brought a feature.
    temperature_ : float

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, §7.1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneAgainstRest(rounds=3).fit(X[:900], y[:900])
    >>> 15 < len(model.support_) <= 30, bool(model.score(X[900:], y[900:]) > 0.75)
    (True, True)
    """

    def __init__(self, rounds: int = 10, learner: ShareBoost | None = None) -> None:
        self.rounds = rounds
        self.learner = learner

    def check_parameters(self) -> None:
        """Check all parameters without data.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        if self.learner is not None and not isinstance(self.learner, ShareBoost):
            raise InputError("learner", type(self.learner).__name__, "ShareBoost, or None")
        self._template().check_parameters()

    def _template(self) -> ShareBoost:
        made: ShareBoost = clone(self.learner if self.learner is not None else ShareBoost())
        return made.set_params(rounds=self.rounds)

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> OneAgainstRest:
        """Learn each class against the rest.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional
            Weights of the examples, at least 0.

        Raises
        ------
        InputError
            If a parameter is out of range or the data has fewer than two classes.
        """
        self.check_parameters()
        if isinstance(X, Columns):
            columns, y = X, np.asarray(y)
            if y.shape != (columns.shape[0],):
                raise InputError("y", y.shape, f"one class for each of {columns.shape[0]} examples")
            self.n_features_in_ = columns.shape[1]
        else:
            table, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
            columns = ArrayColumns(table, dtype=str(table.dtype))
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y", "one class", "examples of two classes or more")
        omega = weights_of(sample_weight, y)
        wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self.learners_ = [self._template().fit(columns, index == c, omega) for c in wanted]
        self._join(columns, index, omega)
        self.n_iter_ = max(model.n_iter_ for model in self.learners_)
        return self

    def _join(self, columns: Columns, index: np.ndarray, omega: np.ndarray) -> None:
        """Bring all learners' weights to one support, and their paths to one path."""
        last = max(len(model.path_) for model in self.learners_)
        place: dict[int, int] = {}
        widths = []
        for t in range(last):
            for model in self.learners_:
                for j in model.path_[t].feature if t < len(model.path_) else ():
                    place.setdefault(int(j), len(place))
            widths.append(len(place))
        self.support_ = np.array(list(place), np.int64)
        held = columns.columns_of(self.support_, scaled=False).astype(np.float64)
        steps: list[PathStep] = []
        for t, width in enumerate(widths):
            coef, intercept = self._weights(t, place, width)
            before = widths[t - 1] if t else 0
            if width == before and t + 1 < last:
                continue
            done = [model.path_[min(t, len(model.path_) - 1)] for model in self.learners_]
            step = path_step(
                held[:width],
                coef,
                intercept,
                index,
                omega,
                round=t + 1,
                feature=tuple(int(j) for j in self.support_[before:width]),
                loss=float(np.mean([s.loss for s in done])),
                seconds=sum(s.seconds for s in done),
                macs=columns.macs(self.support_[:width]) or 0,
                score=float(np.mean([s.score for s in done])),
            )
            if steps and steps[-1].n_features == width:
                steps.pop()
            steps.append(step)
        self.path_ = tuple(steps)
        self.coef_, self.intercept_ = self._weights(last - 1, place, len(place))
        scores = held.T @ self.coef_.T + self.intercept_
        self.temperature_ = fit_temperature(two_sided(scores), index, omega)

    def _weights(self, t: int, place: dict[int, int], width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (T, width) and intercepts (T,) after round t of every class."""
        coef, intercept = np.zeros((len(self.learners_), width)), np.zeros(len(self.learners_))
        for row, model in enumerate(self.learners_):
            final = t >= len(model.path_) - 1
            step = model.path_[min(t, len(model.path_) - 1)]
            weights, b = (
                (model.coef_, model.intercept_) if final else (step.weights, step.intercept)
            )
            where = [place[int(j)] for j in model.support_[: step.n_features]]
            # A learner of two classes has a score for each: their difference decides.
            coef[row, where] = weights[1].astype(np.float64) - weights[0]
            intercept[row] = float(b[1]) - float(b[0])
        return coef, intercept

    def _scores(self, X: np.ndarray | Columns) -> np.ndarray:
        return chosen_columns(self, X) @ self.coef_.T + self.intercept_
