"""The classifier and the regressor of tasks: targets, predictions, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.errors.ranges import check_range
from visionshare.learners.base import Classifier, Regressor
from visionshare.learners.calibration import FOLD_FEATURES, FOLDS, fit_temperature, row_folds
from visionshare.learners.examples import Examples
from visionshare.learners.labels import has_columns
from visionshare.learners.path import generation_path
from visionshare.learners.rounds import Round, task_weights
from visionshare.learners.task_learner import Generated, TaskLearner, finite_numbers
from visionshare.learners.task_targets import (
    TargetsOf,
    class_targets,
    coupled_targets,
    label_targets,
    number_targets,
)
from visionshare.losses import Squared
from visionshare.solvers import (
    AdaBoost,
    TaskProblem,
    TaskWeights,
    intercepts_alone,
    polish,
    solver_maker,
)

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

# Of targets: what differs by less is equal.
_ROUNDING = 1e-9
# Of targets that AdaBoost reaches in the sweeps of a round.
_LARGEST_SPREAD = 1000.0


class TaskClassifier(Classifier, TaskLearner):
    """A classifier by column generation: one task a class or a label."""

    _losses = ("squared_hinge", "logistic", "exponential", "squared", "multinomial")
    takes_labels = True
    _most_iterations = 3000
    class_weight: dict[Any, float] | str | None
    calibrate: bool = True

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> TaskClassifier:
        self._settings()
        if has_columns(y):
            columns, signs, omega = self._label_examples(X, y, sample_weight)
            targets = TargetsOf(label_targets, (signs, omega), signs.shape[1])
            with self._threads(columns) as threads:
                end = self._learn(columns, targets, threads, omega, signs)
                self.coef_, self.intercept_ = self._unscaled(end)
            return self
        examples = self._examples(X, y, sample_weight)
        targets = self._targets(examples)
        with self._threads(examples.columns) as threads:
            end = self._learn(examples.columns, targets, threads, examples.omega, examples.y)
            self.coef_, self.intercept_ = self._unscaled(end)
            self.path_ = generation_path(self.history_, end.pool, examples)
            self.temperature_ = self._temperature(end, examples) if self.calibrate else 1.0
        return self

    def _targets(self, examples: Examples) -> TargetsOf:
        k = examples.n_classes
        known = (examples.y, examples.omega)
        if self.loss == "multinomial" and k > 2:
            return TargetsOf(partial(coupled_targets, n_classes=k), known, k, coupled=True)
        return TargetsOf(partial(class_targets, n_classes=k), known, 1 if k == 2 else k)

    def _temperature(self, solved: Generated, examples: Examples) -> float:
        """Return the temperature for scores of weights that left each third out."""
        problem = solved.problem
        columns = examples.columns
        k = examples.n_classes
        last = task_weights(self.history_[-1])
        values = columns.columns_of(self.support_[:FOLD_FEATURES], scaled=False)
        folds = problem.each(_row_folds, values)
        y = problem.each(_ordered, columns.of_examples(examples.y))
        counts = problem.total(_class_counts, folds, y, k)
        others = counts.sum(axis=0) - counts
        present = counts.sum(axis=0) > 0
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

    def to_classifier(
        self,
        family: Any,
        classes: Sequence[Any] | Mapping[Any, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        # See :meth:`visionshare.learners.base.Classifier.to_classifier`.
        check_is_fitted(self)
        if len(self.support_) == 0:
            raise InputError("alpha", self.alpha, "a smaller one: no feature was chosen")
        return super().to_classifier(family, classes, metadata)


class TaskRegressor(Regressor, TaskLearner):
    """Regression by column generation: one task a target."""

    _losses = ("squared", "insensitive")

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> TaskRegressor:
        self._settings()
        columns, numbers, omega = self._number_examples(X, y, sample_weight)
        spread = _spread_of(numbers, omega)
        is_far = solver_maker(self.solver) is AdaBoost and spread > _LARGEST_SPREAD
        # At the largest alpha no feature enters, and intercepts are exact at any size.
        if is_far and (self.alpha or 0) < self.alpha_max(X, y, sample_weight) * (1 - _ROUNDING):
            where = "from the least to the largest, for the solver 'adaboost'"
            check_range("y", spread, 0.0, _LARGEST_SPREAD, where)
        targets = TargetsOf(number_targets, (numbers, omega), numbers.shape[1])
        # The identity of a run has targets in the shape in which they were given.
        given = numbers[:, 0] if self._flat else numbers
        with self._threads(columns) as threads:
            end = self._learn(columns, targets, threads, omega, given)
        self._take_weights(*self._unscaled(end))
        return self

    def _gradient_scale(self, y: np.ndarray, sample_weight: np.ndarray | None) -> float:
        weight = super()._gradient_scale(y, sample_weight)
        numbers = finite_numbers(y)
        if len(numbers) == 0:
            return weight
        spread = float(numbers.max() - numbers.min())
        # Rounding is no spread.
        return weight * min(1.0, spread) if spread > _ROUNDING * abs(numbers).max() else weight

    def _before(self, problem: TaskProblem) -> Round | None:
        """Return the best intercepts; one step of any solver finds them for squared losses."""
        if isinstance(problem.loss, Squared):
            return None
        alone = intercepts_alone(problem)
        none = np.empty(0, np.int64)
        return Round(
            number=0, entered=none, candidates=none, coef=alone.W.T, shared=alone.shared,
            intercept=alone.b,
        )  # fmt: skip


def _spread_of(numbers: np.ndarray, omega: np.ndarray) -> float:
    """Return the largest distance of two targets of one task, among examples that count."""
    # AdaBoost's steps, of a few units each, would not reach far targets.
    counts = np.broadcast_to(omega.reshape(len(omega), -1) > 0, numbers.shape)
    spreads = [
        float(np.ptp(column[counted])) if counted.any() else 0.0
        for column, counted in zip(numbers.T, counts.T, strict=True)
    ]
    return max(spreads, default=0.0)


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
    return problem.forward(weights.whole) + weights.b


def _outside(_: TaskProblem, folds: np.ndarray, fold: int) -> np.ndarray:
    return folds != fold


def _replaced(
    problem: TaskProblem, scores: np.ndarray, used: np.ndarray, weights: TaskWeights
) -> np.ndarray:
    """Return scores, with the unused rows scored by other weights."""
    return np.where(used[:, None], scores, _scores(problem, weights))


def _omega(problem: TaskProblem) -> np.ndarray:
    return problem.targets.omega
