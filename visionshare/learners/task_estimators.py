"""The classifier and the regressor of tasks: targets, predictions, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.learners.base import Classifier
from visionshare.learners.calibration import FOLD_FEATURES, FOLDS, fit_temperature, row_folds
from visionshare.learners.examples import Examples, example_weights
from visionshare.learners.labels import entry_weights, has_columns, known_entries
from visionshare.learners.path import generation_path
from visionshare.learners.rounds import Round, task_weights
from visionshare.learners.task_learner import Solved, TaskLearner
from visionshare.learners.task_targets import (
    Targets,
    class_targets,
    coupled_targets,
    label_targets,
    number_targets,
)
from visionshare.scores import two_sided
from visionshare.solvers import TaskBlock, TaskWeights, polish

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["TaskClassifier", "TaskRegressor"]


class TaskClassifier(Classifier, TaskLearner):
    """A classifier by column generation: one task a class, or one a group of examples."""

    _losses = ("squared_hinge", "logistic", "exponential", "squared", "multinomial")
    class_weight: dict[Any, float] | str | None
    calibrate: bool = True

    def fit(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        tasks: np.ndarray | None = None,
    ) -> TaskClassifier:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,), or (m, L)
            Classes; or for each of L labels 1 where an example has it, 0 where it has not, NaN
            where that is not known: each label is a task then, and the features are shared.
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
        if has_columns(y):
            return self._fit_labels(X, y, sample_weight, tasks)
        examples = self._examples(X, y, sample_weight)
        targets = self._targets(examples, tasks)
        with self._threads(examples.columns) as threads:
            solved = self._learn(examples.columns, targets, threads, examples.omega, examples.y)
            self.coef_, self.intercept_ = _unscaled(self.history_[-1], solved, self.support_)
            self.path_, self.temperature_ = (), 1.0
            if self.tasks_ is None:
                self.path_ = generation_path(self.history_, solved.pool, examples)
                if self.calibrate:
                    self.temperature_ = self._temperature(solved, targets, examples)
        return self

    def _fit_labels(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None,
        tasks: np.ndarray | None,
    ) -> TaskClassifier:
        if tasks is not None:
            raise InputError("tasks", np.shape(tasks), "None, where y has several labels")
        columns, signs, omega = self._label_examples(X, y, sample_weight)
        self.tasks_ = None
        targets = label_targets(signs, omega)
        with self._threads(columns) as threads:
            solved = self._learn(columns, targets, threads, omega, signs)
            self.coef_, self.intercept_ = _unscaled(self.history_[-1], solved, self.support_)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    def _targets(self, examples: Examples, tasks: np.ndarray | None) -> Targets:
        positions = self._task_positions(tasks, len(examples.y))
        k, omega = examples.n_classes, examples.omega
        if positions is not None and k != 2:
            accepted = "exactly two classes, where tasks are given"
            raise InputError("y", f"{k} classes", accepted)
        if self.loss == "multinomial" and k > 2:
            return coupled_targets(examples.y, k, omega)
        n_tasks = 0 if self.tasks_ is None else len(self.tasks_)
        return class_targets(examples.y, k, omega, positions, n_tasks)

    def _temperature(self, solved: Solved, targets: Targets, examples: Examples) -> float:
        """Return the temperature for scores of weights that left each third out."""
        problem, block = solved.problem, targets.blocks[0]
        last = task_weights(self.history_[-1])
        values = examples.columns.columns_of(self.support_[:FOLD_FEATURES], scaled=False)
        folds = row_folds(values.T, FOLDS)[targets.order]
        y = examples.y[targets.order]
        scores = problem.forward(block, last.whole) + last.b
        held_out = np.zeros_like(scores)
        for fold in range(FOLDS):
            out = folds == fold
            if not out.any() or not np.array_equal(np.unique(y[~out]), np.unique(y)):
                held_out = scores
                break
            weights = self._without(solved, targets, np.flatnonzero(~out))
            held_out[out] = (problem.forward(block, weights.whole) + weights.b)[out]
        return fit_temperature(two_sided(held_out), y, block.omega)

    def _without(self, solved: Solved, targets: Targets, rows: np.ndarray) -> TaskWeights:
        """Return weights of the same features that are fitted to some rows alone."""
        problem, block, classes = solved.problem, targets.blocks[0], targets.classes
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
        start = task_weights(self.history_[-1])
        solution = self._make_solver(smaller).solve(start, self.refit_tol, int(self.max_iter))
        return polish(smaller, solution.weights)

    def decision_function(
        self, X: np.ndarray | Columns, tasks: np.ndarray | None = None
    ) -> np.ndarray:
        return self._flattened(self._task_scores(X, tasks))

    def predict(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        return self._predicted(self._task_scores(X, tasks))

    def predict_proba(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        return self._probabilities(self._task_scores(X, tasks))

    def to_classifier(
        self,
        family: Any,
        classes: Sequence[Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier: the chosen features of ``family`` and their weights.

        See :meth:`visionshare.learners.base.Classifier.to_classifier`.

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
        return super().to_classifier(family, classes, metadata)


class TaskRegressor(RegressorMixin, TaskLearner):
    """Regression by column generation: one task a target, or one a group of examples."""

    _losses = ("squared", "insensitive")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        tasks: np.ndarray | None = None,
    ) -> TaskRegressor:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
        y : array-like of shape (m,) or (m, T)
            Of several columns entries may be missing: NaN.
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
        known = np.ones(1, bool)
        if has_columns(y):
            y, known = known_entries(y)
        columns, y = self._columns(X, y, numeric=True, targets=True)
        y = np.asarray(y, np.float64)
        self._flat = y.ndim == 1
        positions = self._task_positions(tasks, len(y))
        omega = entry_weights(example_weights(sample_weight, y), known)
        n_tasks = 0 if self.tasks_ is None else len(self.tasks_)
        targets = number_targets(y.reshape(len(y), -1), omega, positions, n_tasks)
        with self._threads(columns) as threads:
            solved = self._learn(columns, targets, threads, omega, y)
        coef, intercept = _unscaled(self.history_[-1], solved, self.support_)
        single = self._flat and self.tasks_ is None
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept
        return self

    def predict(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        """Return the targets, (m,) or (m, T)."""
        scores = self._task_scores(X, tasks)
        return scores[:, 0] if self._flat else scores


def _unscaled(last: Round, solved: Solved, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return solved.pool.columns.unscaled(last.coef + last.shared, last.intercept, support)
