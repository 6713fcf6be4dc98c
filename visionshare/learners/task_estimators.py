"""The classifier and the regressor of tasks: targets, predictions, calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from visionshare.learners.task_learner import Solved, TaskLearner, finite_numbers
from visionshare.learners.task_targets import (
    Targets,
    TargetsOf,
    class_targets,
    coupled_targets,
    label_targets,
    number_targets,
)
from visionshare.losses import Squared
from visionshare.solvers import TaskProblem, TaskWeights, intercepts_alone, polish

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["TaskClassifier", "TaskRegressor"]

# Of targets: what differs by less is equal.
_ROUNDING = 1e-9


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
        """Choose features and fit their weights."""
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
                    self.temperature_ = self._temperature(solved, examples)
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
        targets = TargetsOf(label_targets, (signs, omega), signs.shape[1])
        with self._threads(columns) as threads:
            solved = self._learn(columns, targets, threads, omega, signs)
            self.coef_, self.intercept_ = _unscaled(self.history_[-1], solved, self.support_)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    def _targets(self, examples: Examples, tasks: np.ndarray | None) -> TargetsOf:
        positions = self._task_positions(tasks, len(examples.y))
        k, known = examples.n_classes, (examples.y, examples.omega)
        if positions is not None:
            if k != 2:
                accepted = "exactly two classes, where tasks are given"
                raise InputError("y", f"{k} classes", accepted)
            n_tasks = len(np.unique(positions))
            return _of_groups(
                partial(class_targets, n_classes=k, task_of=positions, n_tasks=n_tasks),
                known, n_tasks, examples.columns,
            )  # fmt: skip
        if self.loss == "multinomial" and k > 2:
            return TargetsOf(partial(coupled_targets, n_classes=k), known, k, coupled=True)
        return TargetsOf(partial(class_targets, n_classes=k), known, 1 if k == 2 else k)

    def _temperature(self, solved: Solved, examples: Examples) -> float:
        """Return the temperature for scores of weights that left each third out."""
        problem, columns, k = solved.problem, examples.columns, examples.n_classes
        last = task_weights(self.history_[-1])
        values = columns.columns_of(self.support_[:FOLD_FEATURES], scaled=False)
        folds = problem.each(_row_folds, values)
        y = problem.each(_ordered, columns.of_examples(examples.y))
        counts = problem.total(_class_counts, folds, y, k)
        others, present = counts.sum(axis=0) - counts, counts.sum(axis=0) > 0
        scores = problem.each(_scores, last)
        if counts.any(axis=1).all() and ((others > 0) == present).all():
            for fold in range(FOLDS):
                used = problem.each(_outside, folds, fold)
                weights = self._without(problem, used)
                scores = problem.each(_replaced, scores, used, weights)
        return fit_temperature(scores, y, problem.each(_omega), columns)

    def _without(self, problem: TaskProblem, used: Any) -> TaskWeights:
        """Return weights of the same features that are fitted to the rows that are used alone."""
        smaller = problem.subset(used)
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
        classes: Sequence[Any] | Mapping[Any, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier: the chosen features of ``family`` and their weights."""
        # See :meth:`visionshare.learners.base.Classifier.to_classifier`.
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
        """Choose features and fit their weights."""
        self._settings()
        known = np.ones(1, bool)
        if has_columns(y):
            y, known = known_entries(y)
        columns, y = self._columns(X, y, numeric=True, targets=True)
        y = np.asarray(y, np.float64)
        self._flat = y.ndim == 1
        positions = self._task_positions(tasks, len(y))
        omega = entry_weights(example_weights(sample_weight, y), known)
        numbers = y.reshape(len(y), -1)
        targets = TargetsOf(number_targets, (numbers, omega), numbers.shape[1])
        if positions is not None:
            n_tasks = len(np.unique(positions))
            make = partial(number_targets, task_of=positions, n_tasks=n_tasks)
            targets = _of_groups(make, (numbers, omega), n_tasks, columns)
        with self._threads(columns) as threads:
            solved = self._learn(columns, targets, threads, omega, y)
        coef, intercept = _unscaled(self.history_[-1], solved, self.support_)
        single = self._flat and self.tasks_ is None
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept
        return self

    def _gradient_scale(self, y: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return about what an example's part of a gradient is, 1 at most."""
        weight = super()._gradient_scale(y, sample_weight)
        numbers = finite_numbers(y)
        if len(numbers) == 0:
            return weight
        spread = float(numbers.max() - numbers.min())
        # Rounding is no spread.
        return weight * min(1.0, spread) if spread > _ROUNDING * abs(numbers).max() else weight

    def _before(self, problem: TaskProblem) -> Round | None:
        """Return the best intercepts; one step of any solver finds those of squares."""
        if isinstance(problem.loss, Squared):
            return None
        alone, none = intercepts_alone(problem), np.empty(0, np.int64)
        return Round(
            number=0, entered=none, candidates=none, coef=alone.W.T, shared=alone.shared,
            intercept=alone.b,
        )  # fmt: skip

    def predict(self, X: np.ndarray | Columns, tasks: np.ndarray | None = None) -> np.ndarray:
        """Return the targets, (m,) or (m, T)."""
        scores = self._task_scores(X, tasks)
        return scores[:, 0] if self._flat else scores


def _unscaled(last: Round, solved: Solved, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return solved.pool.columns.unscaled(last.coef + last.shared, last.intercept, support)


def _of_groups(
    make: Callable[..., Targets], known: tuple[np.ndarray, ...], n_tasks: int, columns: Columns
) -> TargetsOf:
    """Return the targets of tasks that have their own examples, in one place."""
    if columns.partitioned:
        raise InputError("tasks", f"{n_tasks} tasks", "None with columns in partitions")
    return TargetsOf(make, known, n_tasks)


def _ordered(problem: TaskProblem, values: np.ndarray) -> np.ndarray:
    """Return the rows of a problem of values of all examples."""
    return values if problem.order is None else values[problem.order]


def _row_folds(problem: TaskProblem, values: np.ndarray) -> np.ndarray:
    return _ordered(problem, row_folds(values.T, FOLDS))


def _class_counts(_: TaskProblem, folds: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return how many rows each fold has of each class, (folds, k)."""
    counts = np.zeros((FOLDS, k), np.int64)
    np.add.at(counts, (folds, y), 1)
    return counts


def _scores(problem: TaskProblem, weights: TaskWeights) -> np.ndarray:
    return problem.forward(problem.blocks[0], weights.whole) + weights.b


def _outside(_: TaskProblem, folds: np.ndarray, fold: int) -> np.ndarray:
    return np.asarray(folds != fold)


def _replaced(
    problem: TaskProblem, scores: np.ndarray, used: np.ndarray, weights: TaskWeights
) -> np.ndarray:
    """Return scores, of which those of rows that are not used are by other weights."""
    return np.where(used[:, None], scores, _scores(problem, weights))


def _omega(problem: TaskProblem) -> np.ndarray:
    return problem.blocks[0].omega
