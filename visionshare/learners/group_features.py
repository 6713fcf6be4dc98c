"""GrFL: few features of a huge or endless pool, found by column generation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.learners.calibration import fit_temperature, row_folds
from visionshare.learners.generation_path import generation_path, unscaled_tasks
from visionshare.learners.preparation import weights_of
from visionshare.learners.scores import compact_classifier
from visionshare.learners.task_learner import TaskLearner
from visionshare.learners.task_targets import (
    Targets,
    class_targets,
    coupled_targets,
    number_targets,
)
from visionshare.scores import flat_scores, predict_labels, softmax, two_sided
from visionshare.search import Pool
from visionshare.solvers import TaskBlock, TaskProblem, TaskWeights, polish

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["GroupFeatureClassifier", "GroupFeatureRegressor"]

_FOLDS = 3


class GroupFeatureClassifier(ClassifierMixin, TaskLearner):
    """Classifier of few shared features, found by column generation (GrFL).

    Minimizes Σ_t Σ_i L(y_it f_t(x_i)) + λ_s ‖w̃‖₁ + λ_p Σ_J ‖W_J‖_q over weights of all features
    of a pool, one task a class (one for two classes). Only features that violate optimality
    enter; those whose weights become zero leave.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic", "squared", "multinomial"}, default "squared_hinge"
        "multinomial" couples the scores of all classes; of two classes it is "logistic".
    q : float, default 2.0
        Norm inside a feature's (or group's) weights of all tasks: 1 to infinity.
    alpha : float or None, default 1.0
        λ_p; None leaves out the tasks' own weights.
    shared_alpha : float or None, default None
        λ_s; None leaves out the weights that all tasks share.
    rounds : int, default 200
        Rounds at most.
    max_features : int, optional
        Stop when so many features have weights.
    n_entering : int, default 1
        Candidates that enter in a round at most, all violators: more of them make fewer rounds.
    search : {"exhaustive", "random", "screened", "sampled"}, default "exhaustive"
        Which candidates are looked at; "sampled" takes fresh draws of a continuous family, see
        :class:`visionshare.store.DrawnColumns`.
    search_options : dict, optional
        Arguments of the search.
    patience : int, default 1
        Stop after so many searches in a row that find no violator.
    solver : {"newton", "fista", "admm"}, default "newton"
        How the restricted problem is solved.
    scaling : {"unit_norm", "unit_variance", "max_abs", "none"}, default "unit_norm"
    tol : float, default 1e-3
        A candidate enters only if it violates optimality by more than this share of λ.
    refit_tol : float, default 1e-4
        KKT residual of the restricted problem, as a share of λ.
    max_iter : int, default 3000
        Iterations of the solver at most.
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn.
    warm_start : bool, default False
        Begin with the candidates and weights of the last ``fit``, of another alpha for example,
        where the columns are the same.
    checkpoint : path-like, optional
        Folder that keeps each round; a run that was killed goes on from the last.
    n_jobs : int, default 1
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, default 0
        Seed of random searches.
    progress : bool, default False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    support_ : ndarray of int
        Ids of the features with weights, in order of entry.
    coef_ : ndarray of shape (T, n_support), float64
        Weights of the features as they are (unscaled): w_t + w̃.
    intercept_ : ndarray of shape (T,), float64
    history_ : tuple of Generation
        Every round: objective, violation, weights of scaled columns.
    path_ : tuple of PathStep
        The classifier after each round whose features are the first of ``support_``.
    temperature_ : float
        Divides the scores in :meth:`predict_proba`; fitted to examples that did not train the
        weights.
    tasks_ : ndarray or None
        Names of the tasks, where they were given to ``fit``.

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import GroupFeatureClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GroupFeatureClassifier(alpha=2.0, max_features=30).fit(X[:600], y[:600])
    >>> len(model.support_), bool(model.score(X[600:], y[600:]) > 0.85)
    (30, True)
    """

    _losses: tuple[str, ...] = ("squared_hinge", "logistic", "squared", "multinomial")
    class_weight: dict[Any, float] | str | None
    calibrate: bool = True

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        q: float = 2.0,
        alpha: float | None = 1.0,
        shared_alpha: float | None = None,
        rounds: int = 200,
        max_features: int | None = None,
        n_entering: int = 1,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        patience: int = 1,
        solver: str = "newton",
        scaling: str = "unit_norm",
        tol: float = 1e-3,
        refit_tol: float = 1e-4,
        max_iter: int = 3000,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self._keep(locals())

    def fit(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        tasks: np.ndarray | None = None,
    ) -> GroupFeatureClassifier:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,)
            Classes.
        sample_weight : array-like of shape (m,), optional
            Weights of the examples, at least 0.
        tasks : array-like of shape (m,), optional
            The task of each example: every task then learns to tell the same two classes apart
            on its own examples.

        Raises
        ------
        InputError
            If a parameter is out of range or the data has fewer than two classes.
        """
        self._settings()
        columns, y = self._columns(X, y, numeric=False)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        place = self._places(tasks, len(y))
        if k < 2 or (place is not None and k != 2):
            wanted = "exactly two classes, where tasks are given" if k > 1 else "two classes"
            raise InputError("y", "one class" if k < 2 else f"{k} classes", wanted)
        omega = weights_of(sample_weight, y, self.class_weight)
        n_tasks = 0 if self.tasks_ is None else len(self.tasks_)
        self._index, self._omega = index, omega
        if self.loss == "multinomial" and k > 2:
            targets = coupled_targets(index, k, omega)
        else:
            targets = class_targets(index, k, omega, place, n_tasks)
        self._learn(columns, targets, omega, index)
        del self._index, self._omega
        return self

    def _finish(self, columns: Columns, pool: Pool, problem: TaskProblem, targets: Targets) -> None:
        self.coef_, self.intercept_ = unscaled_tasks(
            self.history_[-1].weights, columns, self.support_
        )
        self.path_: tuple[PathStep, ...] = ()
        self.temperature_ = 1.0
        if self.tasks_ is None:
            self.path_ = generation_path(self.history_, pool, self._index, self._omega)
            if self.calibrate:
                self.temperature_ = self._temperature(columns, problem, targets)

    @property
    def _coef(self) -> np.ndarray:
        return self.coef_

    @property
    def _intercept(self) -> np.ndarray:
        return self.intercept_

    def _temperature(self, columns: Columns, problem: TaskProblem, targets: Targets) -> float:
        """Return the temperature for scores of weights that left each third out."""
        block, last = targets.blocks[0], self.history_[-1].weights
        rows = columns.columns_of(self.support_[:8], scaled=False).T[targets.order]
        folds = row_folds(rows, _FOLDS)
        y = self._index[targets.order]
        scores = problem.forward(block, last.whole) + last.b
        present = np.unique(y)
        held_out = np.zeros_like(scores)
        for fold in range(_FOLDS):
            out = folds == fold
            if not out.any() or not np.array_equal(np.unique(y[~out]), present):
                held_out = scores
                break
            weights = self._left_out(problem, targets, np.flatnonzero(~out))
            held_out[out] = (problem.forward(block, weights.whole) + weights.b)[out]
        return fit_temperature(two_sided(held_out), y, block.omega)

    def _left_out(self, problem: TaskProblem, targets: Targets, rows: np.ndarray) -> TaskWeights:
        block, classes = targets.blocks[0], targets.classes
        part = TaskBlock(
            slice(0, len(rows)), block.tasks, block.s[rows], block.c[rows], block.omega[rows]
        )
        smaller = self._problem(
            Targets([part], rows, problem.n_tasks, None if classes is None else classes[rows]),
            problem.dtype,
            problem.executor,
        )
        starts = np.append(problem.starts, problem.n)
        for a, b in pairwise(starts):
            smaller.append(problem.columns[a:b, rows], ids=problem.ids[a:b])
        solver = self._make_solver(smaller)
        found = solver.solve(self.history_[-1].weights, self.refit_tol, int(self.max_iter))
        return polish(smaller, found.weights)

    def decision_function(
        self, X: np.ndarray | Columns, tasks: np.ndarray | None = None
    ) -> np.ndarray:
        """Return scores (m, k); for two classes, as in scikit-learn, one a example (m,)."""
        return flat_scores(self._scores(X, tasks))

    def predict(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        """Return the class of each example."""
        check_is_fitted(self)
        return predict_labels(self.classes_, self._scores(X, tasks))

    def predict_proba(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        """Return probabilities (m, k), the softmax of scores / ``temperature_``."""
        return softmax(self._scores(X, tasks), self.temperature_)

    def to_classifier(
        self,
        family: Any,
        classes: Sequence[Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier: the chosen features of ``family`` and their weights.

        Parameters
        ----------
        family : FeatureFamily
            The fitted family whose columns were learned from.
        classes : sequence, optional
            Names for ``classes_``, in that order.
        metadata : dict, optional
            Plain values to keep in the file.

        Raises
        ------
        InputError
            If the classifier has tasks, or no feature at all.
        """
        check_is_fitted(self)
        if self.tasks_ is not None:
            raise InputError("tasks", f"{len(self.tasks_)} tasks", "a classifier of one task")
        if len(self.support_) == 0:
            raise InputError("alpha", self.alpha, "a smaller one: no feature was chosen")
        return compact_classifier(self, family, classes, metadata)


class GroupFeatureRegressor(RegressorMixin, TaskLearner):
    """Regression on few features, found by column generation (GrFL).

    Minimizes Σ_t Σ_i (y_it − f_t(x_i))² + λ_s ‖w̃‖₁ + λ_p Σ_J ‖W_J‖_q over weights of all features
    of a pool; each column of y is a task, or each group of examples.

    Parameters
    ----------
    loss : {"squared", "insensitive"}, default "squared"
        "insensitive" is ln(1 + e^{z−ε}) + ln(1 + e^{−z−ε}) of the difference z.
    q, alpha, shared_alpha, rounds, max_features, n_entering, search, search_options, \
patience, solver, scaling, tol, refit_tol, max_iter, warm_start, checkpoint, n_jobs, \
random_state, progress
        See :class:`GroupFeatureClassifier`.
    eps : float, default 0.1
        ε of the insensitive loss.

    Attributes
    ----------
    support_ : ndarray of int
    coef_ : ndarray of shape (n_support,), or (T, n_support)
    intercept_ : float, or ndarray of shape (T,)
    history_ : tuple of Generation
    tasks_ : ndarray or None

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import GroupFeatureRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 30))
    >>> y = 3 * X[:, 4] - X[:, 17] + 1
    >>> model = GroupFeatureRegressor(alpha=1.0).fit(X, y)
    >>> model.support_.tolist(), round(float(model.intercept_), 1)
    ([4, 17], 1.0)
    """

    _losses: tuple[str, ...] = ("squared", "insensitive")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __init__(
        self,
        loss: str = "squared",
        *,
        q: float = 2.0,
        alpha: float | None = 1.0,
        shared_alpha: float | None = None,
        rounds: int = 200,
        max_features: int | None = None,
        n_entering: int = 1,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        patience: int = 1,
        solver: str = "newton",
        scaling: str = "unit_norm",
        tol: float = 1e-3,
        refit_tol: float = 1e-4,
        max_iter: int = 3000,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
        progress: bool = False,
        eps: float = 0.1,
    ) -> None:
        self._keep(locals())

    def fit(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        tasks: np.ndarray | None = None,
    ) -> GroupFeatureRegressor:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,) or (m, T)
        sample_weight : array-like of shape (m,), optional
            Weights of the examples, at least 0.
        tasks : array-like of shape (m,), optional
            The task of each example, for y of shape (m,).

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._settings()
        columns, y = self._columns(X, y, numeric=True)
        y = np.asarray(y, np.float64)
        self._flat = y.ndim == 1
        place = self._places(tasks, len(y))
        omega = weights_of(sample_weight, y)
        n_tasks = 0 if self.tasks_ is None else len(self.tasks_)
        targets = number_targets(y.reshape(len(y), -1), omega, place, n_tasks)
        self._learn(columns, targets, omega, y)
        return self

    def _finish(self, columns: Columns, pool: Pool, problem: TaskProblem, targets: Targets) -> None:
        coef, intercept = unscaled_tasks(self.history_[-1].weights, columns, self.support_)
        single = self._flat and self.tasks_ is None
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept

    @property
    def _coef(self) -> np.ndarray:
        return np.atleast_2d(self.coef_)

    @property
    def _intercept(self) -> np.ndarray:
        return np.atleast_1d(self.intercept_)

    def predict(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        """Return the targets, (m,) or (m, T)."""
        scores = self._scores(X, tasks)
        return scores[:, 0] if self._flat else scores
