"""JointBoost: GentleBoost with stumps that a subset of the classes shares."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.stumps import StumpColumns, Stumps
from visionshare.learners.calibration import fit_temperature
from visionshare.learners.joint_rounds import shared_stumps
from visionshare.learners.preparation import weights_of
from visionshare.learners.scores import ScoreClassifier, compact_classifier, path_step
from visionshare.resources import resolve_jobs, thread_limit
from visionshare.scores import two_sided

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["JointBoost"]


class JointBoost(ScoreClassifier, BaseEstimator):
    """Boosted stumps, each shared by a subset of the classes.

    A round adds h(v, c) = a · 1[v_f > θ] + b to the scores of the classes of a subset, and a
    constant to those of the others; input, threshold and subset are those of the least weighted
    squared error. All thresholds of all inputs are examined; at each the subset grows by the class
    that leaves least error, up to all classes, and the best subset on the way counts. Weights of
    earlier rounds stay as they are.

    Parameters
    ----------
    rounds : int, default 100
        Rounds at most.
    n_thresholds : int, optional
        At most so many thresholds an input, near its quantiles; all when omitted. For arrays:
        columns have theirs.
    input_fraction : float, default 1.0
        Share of the inputs that a round looks at, drawn anew in each (paper, §2.5).
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn.
    n_jobs : int, default 1
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, default 0
        Seed of the draws of inputs.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    rounds_ : tuple of SharedStump
        Every round: its stump, the classes that share it, its numbers. For two classes there is
        one score, and nothing to share.
    stumps_ : Stumps
        The family that ``support_`` numbers.
    support_ : ndarray of int
        Ids of the stumps, in order of entry; a stump may serve in several rounds.
    coef_ : ndarray of shape (T, n_support), float64
        Weights of the columns 1[v ≤ θ], summed over rounds; T is 1 for two classes, else k.
    intercept_ : ndarray of shape (T,), float64
    path_ : tuple of PathStep
        After each round; rounds in a row that brought no new stump are one step.
    temperature_ : float
        Divides the scores in :meth:`predict_proba`; fitted to the training examples.

    Notes
    -----
    The paper grows one subset for all thresholds together: it finds the best stump of each single
    class, keeps the best class, finds the best stump of each pair with it, and so on. Here every
    threshold has its own subset, which examines more and costs one walk.

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

    def __init__(
        self,
        rounds: int = 100,
        *,
        n_thresholds: int | None = None,
        input_fraction: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.rounds = rounds
        self.n_thresholds = n_thresholds
        self.input_fraction = input_fraction
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Check all parameters without data.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        value: Any = self.rounds
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError("rounds", value, "a whole number of at least 1")
        share = self.input_fraction
        if not isinstance(share, Real) or not 0 < float(share) <= 1:
            raise InputError("input_fraction", share, "a share above 0 and at most 1")
        Stumps(self.n_thresholds).check_parameters()
        resolve_jobs(self.n_jobs)

    def fit(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> JointBoost:
        """Choose stumps, the classes that share them and their numbers.

        Parameters
        ----------
        X : array-like of shape (m, p), or StumpColumns
            Examples by inputs; stumps are fitted to those whose weight is not 0.
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional
            Weights of the examples, at least 0.

        Raises
        ------
        InputError
            If a parameter is out of range, the columns are no stumps, or the data has fewer than
            two classes or no input with two values.
        """
        self.check_parameters()
        table, y = self._table(X, y)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y", "one class", "examples of two classes or more")
        omega = weights_of(sample_weight, y, self.class_weight)
        with thread_limit(self.n_jobs):
            if isinstance(table, StumpColumns):
                columns = table
            else:
                # Thresholds lie between examples that count.
                used = omega > 0
                table, index, omega = table[used], index[used], omega[used]
                columns = StumpColumns(
                    Stumps(self.n_thresholds).fit(table), table, resolve_jobs(self.n_jobs)
                )
            self.stumps_ = columns.family
            wanted = [1] if len(self.classes_) == 2 else range(len(self.classes_))
            z = np.column_stack([np.where(index == c, 1.0, -1.0) for c in wanted])
            inputs = max(1, round(self.input_fraction * len(columns.order)))
            rng = np.random.default_rng(self.random_state)
            self.rounds_ = tuple(
                shared_stumps(columns, z, omega / omega.sum(), int(self.rounds), inputs, rng)
            )
            self._gather(columns, index, omega)
        self.n_iter_ = len(self.rounds_)
        return self

    def _table(
        self, X: np.ndarray | Columns, y: np.ndarray
    ) -> tuple[np.ndarray | StumpColumns, np.ndarray]:
        if not isinstance(X, Columns):
            table, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
            return table, y
        if not isinstance(X, StumpColumns):
            raise InputError("X", type(X).__name__, "an array of inputs, or StumpColumns")
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise InputError("y", y.shape, f"one class for each of {X.shape[0]} examples")
        self.n_features_in_ = X.shape[1]
        return X, y

    def _gather(self, columns: StumpColumns, index: np.ndarray, omega: np.ndarray) -> None:
        """Sum the rounds' weights, one column a stump; make the path; calibrate."""
        T = 1 if len(self.classes_) == 2 else len(self.classes_)
        place: dict[int, int] = {}
        for r in self.rounds_:
            place.setdefault(r.feature, len(place))
        self.support_ = np.array(list(place), np.int64)
        held = columns.columns_of(self.support_, scaled=False).astype(np.float64)
        self.coef_, self.intercept_ = np.zeros((T, len(place))), np.zeros(T)
        steps: list[PathStep] = []
        width, seconds = 0, 0.0
        for r in self.rounds_:
            self.coef_[:, place[r.feature]] += r.weights
            self.intercept_ = self.intercept_ + r.intercepts
            width, seconds = max(width, place[r.feature] + 1), seconds + r.seconds
            if steps and steps[-1].n_features == width:
                steps.pop()
            before = steps[-1].n_features if steps else 0
            steps.append(
                path_step(
                    held[:width], self.coef_[:, :width], self.intercept_, index, omega,
                    round=r.number, feature=tuple(int(j) for j in self.support_[before:width]),
                    loss=r.loss, seconds=seconds, score=r.gain,
                    macs=columns.macs(self.support_[:width]),
                )
            )  # fmt: skip
        self.path_ = tuple(steps)
        scores = held.T @ self.coef_.T + self.intercept_
        self.temperature_ = fit_temperature(two_sided(scores), index, omega)

    def _scores(self, X: np.ndarray | Columns) -> np.ndarray:
        check_is_fitted(self)
        if isinstance(X, Columns):
            held = X.columns_of(self.support_, scaled=False).T
        else:
            table = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
            held = self.stumps_.transform(table, self.support_)
        return held @ self.coef_.T + self.intercept_

    def to_classifier(
        self,
        family: Any = None,
        classes: Sequence[Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> CompactClassifier:
        """Return the compact classifier of the chosen stumps.

        Parameters
        ----------
        family : Stumps, optional
            ``stumps_`` when omitted.
        classes : sequence, optional
            Names for ``classes_``, in that order.
        metadata : dict, optional
            Plain values to keep in the file.

        Raises
        ------
        InputError
            If no stump was chosen.
        """
        check_is_fitted(self)
        return compact_classifier(self, family or self.stumps_, classes, metadata)
