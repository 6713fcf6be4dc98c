"""GreedyTL: few features and source classifiers, chosen together for a new task."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from visionshare.classifier.path import PathStep
from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.preparation import search_of, weights_of
from visionshare.learners.ridge_rounds import RidgeSettings, ridge_rounds
from visionshare.learners.scores import ScoreClassifier, joined, path_step
from visionshare.resources import resolve_jobs, thread_limit
from visionshare.scores import two_sided
from visionshare.search import Pool

__all__ = ["GreedyTL"]


class GreedyTL(ScoreClassifier, BaseEstimator):
    """Greedy transfer: ridge regression on few of many features and sources.

    Each round takes the column of Z = [X, h_1(x), …, h_n(x)] that lowers the error of ridge
    regression most; with more than two classes each is learned against the rest.

    Parameters
    ----------
    rounds : int, default 100
        Features and sources at most, a class.
    sources : sequence, optional
        Predictors whose scores are columns too, after those of X; see
        :class:`visionshare.generators.sources.SourceClassifiers`. Not with ``Columns``: their
        family may be a union that holds sources.
    alpha : float, default 1.0
        λ.
    tol : float, default 1e-4
        δ: stop when a round lowers the regularized error by less than this share.
    search : {"exhaustive", "random"}, default "exhaustive"
        "random" looks at a fresh random subset each round, 59 when not said otherwise: among 59
        is one of the best 5 % in 95 of 100 rounds (GreedyTL-59).
    search_options : dict, optional
        Arguments of the search, such as ``{"n": 59}``.
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn.
    fit_intercept : bool, default True
        When not, a class is decided as in the paper: by a score above that of the mean example,
        whatever the shares of the classes are. For few examples that are not drawn in proportion.
    n_jobs : int, default 1
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, default 0
        Seed of random searches.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    support_ : ndarray of int
        Chosen columns of Z, of all classes together, in order of entry.
    coef_ : ndarray of shape (T, n_support), float64
        Weights of the columns as they are (unscaled); T is 1 for two classes, else k.
    scaled_coef_ : ndarray of shape (T, n_support), float64
        Weights of the columns at variance 1: comparable with each other.
    intercept_ : ndarray of shape (T,), float64
    rounds_ : list of list of RidgeRound
        Of each task.
    path_ : tuple of PathStep
        For two classes every round, otherwise the end alone.
    chosen_sources_ : list of tuple (class, source, output, weight)
        With weights of ``scaled_coef_``.
    temperature_ : float
        Divides the scores in :meth:`predict_proba`; fitted to leave-one-out scores.

    References
    ----------
    I. Kuzborskij, F. Orabona, B. Caputo, "Scalable greedy algorithms for transfer learning",
    Computer Vision and Image Understanding 156, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(12, 200))
    >>> y = X[:, 7] + X[:, 8] > 0
    >>> model = GreedyTL(sources=[lambda X: X[:, 7] + X[:, 8]], rounds=1).fit(X, y)
    >>> model.support_.tolist(), model.chosen_sources_[0][:3]
    ([200], (True, 0, 0))
    """

    def __init__(
        self,
        rounds: int = 100,
        *,
        sources: Sequence[Any] | None = None,
        alpha: float = 1.0,
        tol: float = 1e-4,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.sources = sources
        self.alpha = alpha
        self.tol = tol
        self.search = search
        self.search_options = search_options
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Check all parameters without data.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._settings()

    def _settings(self) -> RidgeSettings:
        value: Any = self.rounds
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError("rounds", value, "a whole number of at least 1")
        if not isinstance(self.alpha, Real) or not 0 < float(self.alpha) < np.inf:
            raise InputError("alpha", self.alpha, "a finite number above 0")
        if not isinstance(self.tol, Real) or not 0 <= float(self.tol) < np.inf:
            raise InputError("tol", self.tol, "a finite number of at least 0")
        if self.search not in ("exhaustive", "random"):
            raise InputError("search", self.search, "'exhaustive' or 'random'")
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise InputError("fit_intercept", self.fit_intercept, "True or False")
        search = search_of(self)
        return RidgeSettings(int(self.rounds), float(self.alpha), float(self.tol), search)

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> GreedyTL:
        """Choose features and sources and fit their weights.

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
        settings = self._settings()
        columns, y = self._columns(X, y)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y", "one class", "examples of two classes or more")
        omega = weights_of(sample_weight, y, self.class_weight)
        columns.n_jobs = resolve_jobs(self.n_jobs)
        with thread_limit(self.n_jobs):
            columns.fit_scaling("unit_variance", omega)
            pool = Pool(columns)
            wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
            targets = [np.where(index == c, 1.0, -1.0) for c in wanted]
            self.rounds_ = [list(ridge_rounds(pool, t, omega, settings)) for t in targets]
            self._gather(columns, targets, omega, index)
        self.n_iter_ = max(len(rounds) for rounds in self.rounds_)
        return self

    def _columns(self, X: np.ndarray | Columns, y: np.ndarray) -> tuple[Columns, np.ndarray]:
        self._scorers = None
        if isinstance(X, Columns):
            if self.sources:
                raise InputError("sources", len(self.sources), "None, for columns of a family")
            y = np.asarray(y)
            if y.shape != (X.shape[0],):
                raise InputError("y", y.shape, f"one class for each of {X.shape[0]} examples")
            self.n_features_in_ = X.shape[1]
            return X, y
        table, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        if self.sources:
            from visionshare.generators.sources import SourceClassifiers

            self._scorers = SourceClassifiers(self.sources).fit(table)
        whole = self._with_scores(table)
        return ArrayColumns(whole, dtype=str(whole.dtype)), y

    def _with_scores(self, table: np.ndarray) -> np.ndarray:
        """Return [X, h_1(x), …, h_n(x)]."""
        if self._scorers is None:
            return table
        return np.hstack([table, self._scorers.transform(table)])

    def _gather(
        self, columns: Columns, targets: list[np.ndarray], omega: np.ndarray, index: np.ndarray
    ) -> None:
        """Bring all tasks' weights to one support; calibrate."""
        ids = [
            np.concatenate([np.empty(0, np.int64), *(r.features for r in rounds)])
            for rounds in self.rounds_
        ]
        weights = [rounds[-1].weights if rounds else np.empty(0) for rounds in self.rounds_]
        self.support_, self.scaled_coef_ = joined(ids, weights)
        offset, scale = columns.scaling_of(self.support_)
        means = np.array([np.dot(omega, t) / omega.sum() for t in targets])
        if not self.fit_intercept:
            means[:] = 0
        left_out = np.empty((len(omega), len(targets)))
        for t, rounds in enumerate(self.rounds_):
            left_out[:, t] = means[t]
            if rounds:
                left_out[:, t] += rounds[-1].left_out
        self.coef_ = self.scaled_coef_ * scale
        self.intercept_ = means - self.coef_ @ offset
        self.temperature_ = fit_temperature(two_sided(left_out), index, omega)
        self.path_ = self._path(columns, index, omega)

    def _path(self, columns: Columns, index: np.ndarray, omega: np.ndarray) -> tuple[PathStep, ...]:
        if len(self.support_) == 0:
            return ()
        held = columns.columns_of(self.support_, scaled=False).astype(np.float64)
        offset, scale = columns.scaling_of(self.support_)

        def step(before: int, coef: np.ndarray, intercept: np.ndarray, **figures: Any) -> PathStep:
            support = self.support_[: coef.shape[1]]
            figures["feature"] = tuple(int(j) for j in support[before:])
            figures["macs"] = columns.macs(support) or 0
            return path_step(held[: len(support)], coef, intercept, index, omega, **figures)

        if len(self.rounds_) > 1:
            error = float(np.mean([rounds[-1].error if rounds else 1.0 for rounds in self.rounds_]))
            seconds = sum(r.seconds for rounds in self.rounds_ for r in rounds)
            figures = {"round": 1, "loss": error, "seconds": seconds, "score": 0.0}
            return (step(0, self.coef_, self.intercept_, **figures),)
        steps: list[PathStep] = []
        mean = float(self.intercept_[0] + self.coef_[0] @ offset)
        n, seconds = 0, 0.0
        for r in self.rounds_[0]:
            before, n, seconds = n, n + len(r.features), seconds + r.seconds
            coef = (r.weights * scale[:n])[None]
            figures = {"round": r.number, "loss": r.error, "seconds": seconds, "score": r.score}
            steps.append(step(before, coef, mean - coef @ offset[:n], **figures))
        return tuple(steps)

    @property
    def chosen_sources_(self) -> list[tuple[Any, int, int, float]]:
        """Class, source, output and weight of each chosen source, the largest weights first."""
        check_is_fitted(self)
        if self._scorers is None:
            return []
        names = self.classes_[1:] if len(self.rounds_) == 1 else self.classes_
        found = []
        for i, j in enumerate(self.support_):
            if j < self.n_features_in_:
                continue
            source, output = self._scorers.layout_[j - self.n_features_in_]
            for name, weight in zip(names, self.scaled_coef_[:, i], strict=True):
                if weight:
                    found.append((name.item(), int(source), int(output), float(weight)))
        return sorted(found, key=lambda entry: -abs(entry[3]))

    def _scores(self, X: np.ndarray | Columns) -> np.ndarray:
        check_is_fitted(self)
        if isinstance(X, Columns):
            held = X.columns_of(self.support_, scaled=False).T
        else:
            table = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
            held = self._with_scores(table)[:, self.support_]
        return held @ self.coef_.T + self.intercept_
