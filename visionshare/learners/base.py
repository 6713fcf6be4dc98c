"""The base of all learners: settings, checked inputs, threads, scores and the compact classifier.

A learner is a dataclass of its settings, a ``fit`` that runs its loop, and this base. Its
checkpoints and progress are a :class:`visionshare.learners.checkpoint.Run`; the classifiers that
its rounds left are a path, see :mod:`visionshare.learners.path`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from visionshare.class_labels import accuracy, label_array, renamed
from visionshare.classifier.path import PathStep
from visionshare.columns import ArrayColumns, Columns, SparseColumns
from visionshare.errors import InputError
from visionshare.errors.inputs import input_errors
from visionshare.errors.ranges import LARGEST_WEIGHT, check_range, peak_of
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.examples import (
    Examples,
    check_length,
    checked_table,
    checked_targets,
    classes_and_numbers,
    example_weights,
)
from visionshare.learners.labels import (
    check_targets,
    entry_weights,
    finite_numbers,
    has_columns,
    known_entries,
    label_signs,
)
from visionshare.learners.parameters import checked_options
from visionshare.machine.resources import resolve_jobs, thread_limit
from visionshare.scores import (
    finite_scores,
    flat_scores,
    predict_labels,
    sigmoid,
    softmax,
    two_sided,
)
from visionshare.search import (
    Exhaustive,
    PerCostSearch,
    RandomSubset,
    Search,
    make_search,
    steps_of,
)
from visionshare.search.per_cost import check_known

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

# Weights of a compact classifier, which has them in float32.
_LEAST_COEF = 1e-30


class Learner(BaseEstimator):
    """What classifiers and regressors share."""

    support_: np.ndarray
    coef_: np.ndarray
    intercept_: Any
    n_features_in_: int
    n_jobs: int | None
    random_state: Any
    search: str | Search
    search_options: dict[str, Any] | None
    # Parameters of the draws that a search moved, by their numbers.
    moved_: dict[int, np.ndarray] | None = None
    takes_moving_draws: ClassVar[bool] = False
    # Whether a learner takes columns whose examples lie in several places, and sparse matrices.
    takes_partitions: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    # Whether the columns that it chooses among are made of those that it is given.
    makes_columns: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        return tags

    def check_parameters(self) -> None:
        """Check all parameters without data."""
        self._settings()

    @abstractmethod
    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> Learner:
        """Choose features and fit their weights."""

    @abstractmethod
    def _settings(self) -> Any:
        """Check all parameters; return what the loop needs to know of them."""

    def _search(self) -> Search:
        """Return the search that the settings ask for; random ones get the learner's seed."""
        options = checked_options("search_options", self.search_options)
        if self.search == "random":
            options.setdefault("random_state", self.random_state)
        search = make_search(self.search, **options)
        if steps_of(search) and not self.takes_moving_draws:
            raise InputError("steps", steps_of(search), f"0, for {type(self).__name__}")
        return search

    def _check_costs(self, search: Search, columns: Columns) -> None:
        """Raise an InputError where a search by cost has columns whose cost is unknown."""
        if isinstance(search, PerCostSearch):
            check_known(columns, search.per)

    def _columns(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        *,
        numeric: bool = False,
        targets: bool = False,
    ) -> tuple[Columns, np.ndarray]:
        """Return checked columns and targets; with ``targets`` these may have several columns."""
        sparse = ["csc", "csr"] if self.takes_sparse else False
        if isinstance(X, Columns):
            y = np.asarray(y)
            m = X.shape[0]
            if y.shape[:1] != (m,) or (y.ndim > 1 and not targets):
                raise InputError("y", y.shape, f"one target for each of {m} examples")
            if numeric:
                y = finite_numbers(y)
                check_targets(y)
            self._check_partitions(X)
            self.n_features_in_ = X.shape[1]
            return self._given_columns(X), y
        if isinstance(X, np.ndarray) and X.ndim > 2:
            accepted = "a table (m, d); for images: visionshare.ImageClassifier, or a pipeline"
            raise InputError("X", X.shape, f"{accepted} of a family such as PatchTemplates")
        y = checked_targets(self, y, numeric=numeric, several=targets)
        table = checked_table(self, X, reset=True, sparse=sparse)
        check_length(y, table.shape[0])
        if numeric:
            check_targets(finite_numbers(y))
        if issparse(table):
            return SparseColumns(table, dtype=str(table.dtype)), y
        return self._table_columns(table), y

    def _check_partitions(self, columns: Columns) -> None:
        """Raise an InputError where partitions are given, and learner or search takes none."""
        if not columns.partitioned:
            return
        if not self.takes_partitions:
            raise InputError(
                "X", "columns in partitions", f"columns whole for {type(self).__name__}"
            )
        search = self._search()
        inner = search.search if isinstance(search, PerCostSearch) else search
        if not isinstance(inner, (Exhaustive, RandomSubset)):
            accepted = "'exhaustive' or 'random' with columns in partitions"
            raise InputError("search", type(inner).__name__.lower(), accepted)

    def _given_columns(self, columns: Columns) -> Columns:
        """Return columns that ``fit`` was given, if they are of a kind that the learner takes."""
        return columns

    def _table_columns(self, table: np.ndarray) -> Columns:
        """Return the columns of a checked array."""
        return ArrayColumns(table, dtype=str(table.dtype))

    def _table_features(self, table: np.ndarray) -> np.ndarray:
        """Return the chosen features (m, n_support) of a checked array."""
        return table[:, self.support_]

    @contextmanager
    def _threads(self, columns: Columns) -> Iterator[Executor]:
        """Give the columns' products and the solvers as many threads as ``n_jobs`` says."""
        jobs = resolve_jobs(self.n_jobs)
        with thread_limit(self.n_jobs), ThreadPoolExecutor(jobs) as executor:
            columns.n_jobs = jobs
            yield executor

    def _scores(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return scores (m, T) of a fitted learner."""
        check_is_fitted(self)
        coef = np.atleast_2d(self.coef_)
        intercept = np.atleast_1d(self.intercept_)
        if isinstance(X, Columns):
            X = X.moved_to(self.moved_) if self.moved_ else X
            return finite_scores(X.scores_of(self.support_, coef, intercept), "X")
        sparse = "csc" if self.takes_sparse else False
        table = checked_table(self, X, reset=False, sparse=sparse)
        values = table[:, self.support_] if issparse(table) else self._table_features(table)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(values @ coef.T + intercept)
        return finite_scores(scores, "X")


class Classifier(ClassifierMixin, Learner):
    """What classifiers share: classes, predictions, probabilities, the compact classifier."""

    classes_: np.ndarray
    temperature_: float
    path_: tuple[PathStep, ...]
    # Number of labels, where an example may have several.
    n_labels_: int | None = None
    takes_labels: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.takes_labels
        tags.target_tags.multi_output = self.takes_labels
        return tags

    def _examples(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> Examples:
        """Check the inputs of ``fit`` and learn the classes' names."""
        columns, y = self._columns(X, y if y is None else label_array(y))
        self.n_labels_ = None
        self.classes_, index = classes_and_numbers(y)
        omega = example_weights(sample_weight, y, getattr(self, "class_weight", None))
        if len(np.unique(index[omega > 0])) < 2:
            accepted = "weights above 0 of two classes or more"
            raise InputError("sample_weight", "weights of one class alone", accepted)
        return Examples(columns, index, omega, len(self.classes_))

    def _label_examples(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Columns, np.ndarray, np.ndarray]:
        """Check the inputs of ``fit`` with several labels; return columns, signs and weights."""
        # Signs are (m, L), the weights (m,), or (m, L) where labels are missing.
        if getattr(self, "class_weight", None) is not None:
            raise InputError("class_weight", self.class_weight, "None, where y has several labels")
        filled, known = known_entries(y)
        columns, filled = self._columns(X, filled, numeric=True, targets=True)
        omega = entry_weights(example_weights(sample_weight, filled), known)
        signs = label_signs(filled, omega if omega.ndim == 2 else omega[:, None])
        self.n_labels_ = signs.shape[1]
        self.classes_ = np.arange(self.n_labels_)
        self.path_ = ()
        self.temperature_ = 1.0
        return columns, signs, omega

    def _training_temperature(self, examples: Examples) -> float:
        """Return the temperature for the scores of the training examples."""
        values = examples.columns.columns_of(self.support_, scaled=False).astype(np.float64)
        scores = values.T @ self.coef_.T + self.intercept_
        return fit_temperature(two_sided(scores), examples.y, examples.omega)

    def decision_function(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return scores (m, k); for two classes, as in scikit-learn, one per example (m,)."""
        scores = self._scores(X)
        return scores if self.n_labels_ is not None else flat_scores(scores)

    def predict(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return the class of each example, or 0 and 1 for each of several labels (m, L)."""
        scores = self._scores(X)
        if self.n_labels_ is not None:
            return (scores > 0).astype(np.int64)
        return predict_labels(self.classes_, scores)

    def score(self, X: np.ndarray | Columns, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: labels of any type that ``fit`` takes."""
        return accuracy(y, self.predict(X), sample_weight)

    def predict_proba(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return probabilities (m, k), the softmax of scores / ``temperature_``."""
        # Of several labels each has a probability of its own, (m, L).
        scores = self._scores(X)
        if self.n_labels_ is not None:
            return sigmoid(scores)
        return softmax(scores, self.temperature_)

    def to_classifier(
        self,
        family: Any,
        classes: Sequence[Any] | Mapping[Any, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier: the chosen features of ``family`` and their weights."""
        from visionshare.classifier import CompactClassifier
        from visionshare.datasets.training_values import TrainingValues

        check_is_fitted(self)
        if self.n_labels_ is not None:
            raise InputError("y", f"{self.n_labels_} labels", "one class an example, to export it")
        if len(self.support_) == 0:
            raise InputError("support_", "empty", "a learner that chose a feature")
        seen = getattr(family, "values_", None)
        weights = two_sided(self.coef_.T).T
        # What float32 cannot hold would be 0 in silence.
        check_range("coef_", peak_of(weights), _LEAST_COEF, LARGEST_WEIGHT)
        return CompactClassifier(
            (family.moved_to(self.moved_) if self.moved_ else family).take(self.support_),
            weights.astype(np.float32),
            two_sided(self.intercept_[None])[0].astype(np.float32),
            self.classes_ if classes is None else renamed(self.classes_, classes),
            temperature=self.temperature_,
            path=self.path_,
            metadata=metadata or {},
            values=None if seen is None else TrainingValues(seen[0], seen[1], seen[2], "numbers"),
        )


class Regressor(RegressorMixin, Learner):
    """What regressors share: one target or several, some of whose entries may be missing."""

    _flat: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _number_examples(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Columns, np.ndarray, np.ndarray]:
        """Check the inputs of ``fit``; return columns, numbers (m, T) and weights."""
        known = np.ones(1, bool)
        if has_columns(y):
            y, known = known_entries(y)
        columns, y = self._columns(X, y, numeric=True, targets=True)
        y = np.asarray(y, np.float64)
        self._flat = y.ndim == 1
        omega = entry_weights(example_weights(sample_weight, y), known)
        return columns, y.reshape(len(y), -1), omega

    def _take_weights(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_ = coef[0] if self._flat else coef
        self.intercept_ = float(intercept[0]) if self._flat else intercept

    def predict(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return the targets, (m,) or (m, T)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def score(self, X: np.ndarray | Columns, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R²."""
        predicted = self.predict(X)
        with input_errors("y", y, f"the targets of {len(predicted)} examples"):
            return float(r2_score(y, predicted, sample_weight=sample_weight))
