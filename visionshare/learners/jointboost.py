"""JointBoost: GentleBoost with stumps that a subset of the classes shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.errors.ranges import check_range
from visionshare.generators.stumps import StumpColumns, Stumps
from visionshare.learners.base import Classifier
from visionshare.learners.examples import Examples
from visionshare.learners.joint_rounds import shared_stumps
from visionshare.learners.parameters import check_run, check_whole_numbers
from visionshare.learners.path import Prefix, prefix_path, widest
from visionshare.machine.resources import resolve_jobs

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

# Largest absolute values of an input that thresholds of float32 can tell apart.
_LEAST_INPUT = 1e-30
_LARGEST_INPUT = 1e30


@dataclass(eq=False, repr=False)
class JointBoost(Classifier):
    """Boosted stumps, each shared by a subset of the classes.

    A round adds h(v, c) = a · 1[v_f > θ] + b to the scores of the classes of a subset, and a
    constant to those of the others; input, threshold and subset are those of the least weighted
    squared error. All thresholds of all inputs are examined; at each the subset grows by the class
    that leaves least error, up to all classes, and the best subset on the way counts (in the paper
    one subset grows for all thresholds together). Weights of
    earlier rounds stay unchanged.

    Parameters
    ----------
    rounds : int, default 100
        Rounds at most.
    n_thresholds : int, optional
        At most so many thresholds an input, near its quantiles; all when omitted. For arrays:
        columns have theirs.
    class_weight, n_jobs
        As in :class:`ShareBoost`.
    random_state : int, default 0
        Not used: nothing is random.

    Attributes
    ----------
    rounds_ : tuple of SharedStump
        Every round: its stump, the classes that share it, its numbers. For two classes there is
        one score, and nothing to share.
    stumps_ : Stumps
        The family that ``support_`` numbers.
    coef_ : ndarray of shape (T, n_support), float64
        Weights of the columns 1[v ≤ θ], summed over rounds; T is 1 for two classes, else k.
    classes_, support_, intercept_, path_, temperature_
        As in :class:`ShareBoost`; rounds in a row that brought no new stump are one step.

    References
    ----------
    A. Torralba, K. P. Murphy, W. T. Freeman, "Sharing visual features for multiclass and
    multiview object detection", IEEE PAMI 29, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import JointBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> model = JointBoost(rounds=60).fit(X[:1200], y[:1200])
    >>> shared = max(int(r.shared.sum()) for r in model.rounds_)
    >>> bool(model.score(X[1200:], y[1200:]) > 0.8), shared > 1
    (True, True)
    """

    rounds: int = 100
    _: KW_ONLY
    n_thresholds: int | None = None
    class_weight: dict[Any, float] | str | None = None
    n_jobs: int | None = 1
    random_state: int = 0
    makes_columns = True

    def _settings(self) -> None:
        check_whole_numbers(self, 1, "rounds")
        Stumps(self.n_thresholds).check_parameters()
        check_run(self)

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> JointBoost:
        """Choose stumps, the classes that share them and their numbers."""
        self._settings()
        examples = self._examples(X, y, sample_weight)
        with self._threads(examples.columns):
            examples, columns = self._stumps(examples)
            self.stumps_ = columns.family
            fractions = examples.omega / examples.omega.sum()
            self.rounds_ = tuple(
                shared_stumps(columns, examples.signs, fractions, int(self.rounds))
            )
            self._gather(examples)
        self.n_iter_ = len(self.rounds_)
        return self

    def _given_columns(self, columns: Columns) -> Columns:
        if not isinstance(columns, StumpColumns):
            raise InputError("X", type(columns).__name__, "an array of inputs, or StumpColumns")
        return columns

    def _table_features(self, table: np.ndarray) -> np.ndarray:
        return self.stumps_.transform(table, self.support_)

    def _stumps(self, examples: Examples) -> tuple[Examples, StumpColumns]:
        """Return the examples that the stumps are fitted to, and all stumps of their inputs."""
        columns = examples.columns
        if isinstance(columns, StumpColumns):
            return examples, columns
        assert isinstance(columns, ArrayColumns)
        # Thresholds lie between examples that count.
        used = examples.omega > 0
        values = columns.table()
        assert values is not None
        table = np.ascontiguousarray(values.T[used])
        for j, peak in enumerate(np.abs(table).max(axis=0, initial=0.0)):
            check_range("X", float(peak), _LEAST_INPUT, _LARGEST_INPUT, f"in column {j}")
        family = Stumps(self.n_thresholds).fit(table)
        stumps = StumpColumns(family, table, resolve_jobs(self.n_jobs))
        kept = replace(examples, columns=stumps, y=examples.y[used], omega=examples.omega[used])
        return kept, stumps

    def _gather(self, examples: Examples) -> None:
        """Sum the rounds' weights, one column for each stump; make the path; calibrate."""
        chosen = dict.fromkeys(r.feature for r in self.rounds_)
        self.support_ = np.array(list(chosen), np.int64)
        T = 1 if examples.n_classes == 2 else examples.n_classes
        self.coef_ = np.zeros((T, 0))
        self.intercept_ = np.zeros(T)
        prefixes = list(self._prefixes(T))
        if prefixes:
            self.coef_ = prefixes[-1].coef
            self.intercept_ = prefixes[-1].intercept
        self.path_ = prefix_path(examples.columns, self.support_, examples, widest(prefixes))
        self.temperature_ = self._training_temperature(examples)

    def _prefixes(self, T: int) -> Iterator[Prefix]:
        """Yield the model after each round."""
        coef = np.zeros((T, len(self.support_)))
        intercept = np.zeros(T)
        position = {int(j): i for i, j in enumerate(self.support_)}
        width = 0
        seconds = 0.0
        for r in self.rounds_:
            coef[:, position[r.feature]] += r.weights
            intercept = intercept + r.intercepts
            width = max(width, position[r.feature] + 1)
            seconds = seconds + r.seconds
            yield Prefix(r.number, coef[:, :width].copy(), intercept, r.loss, r.gain, seconds)

    def to_classifier(
        self,
        family: Any = None,
        classes: Sequence[Any] | Mapping[Any, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier of the chosen stumps, ``stumps_`` by default.

        See :meth:`visionshare.learners.base.Classifier.to_classifier`.
        """
        family = getattr(self, "stumps_", None) if family is None else family
        return super().to_classifier(family, classes, metadata)
