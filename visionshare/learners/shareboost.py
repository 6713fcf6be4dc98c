"""ShareBoost: a multiclass classifier of few features that all classes share."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from visionshare.columns import ArrayColumns, Columns
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError
from visionshare.fingerprints import array_fingerprint
from visionshare.learners.backward import backward_steps, nested_path
from visionshare.learners.calibration import cross_fitted_scores, fit_temperature, row_folds
from visionshare.learners.checkpoint import Checkpoint
from visionshare.learners.greedy import GreedySettings, Round, best_round, greedy_rounds
from visionshare.learners.path_steps import path_steps, unscaled
from visionshare.learners.preparation import chosen_columns, search_of, weights_of
from visionshare.learners.scores import compact_classifier
from visionshare.losses import MulticlassLogistic
from visionshare.penalties import make_penalty
from visionshare.resources import resolve_jobs, thread_limit
from visionshare.scores import predict_labels, softmax
from visionshare.search import Pool, make_criterion
from visionshare.solvers import ActiveSet

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["ShareBoost"]

_FOLDS = 3
# Parameters that no round depends on.
_NOT_OF_THE_PATH = {
    "rounds", "n_backward", "n_jobs", "progress", "checkpoint", "warm_start", "patience",
}  # fmt: skip


class ShareBoost(ClassifierMixin, BaseEstimator):
    """Greedy multiclass learning with shared features.

    Each round adds the feature, or the group of features, that promises most for all classes
    together, then fits the weights of all chosen features anew until they converge.

    Parameters
    ----------
    rounds : int, default 75
        Features, or groups of features, to choose at most.
    n_backward : int, default 0
        Rounds beyond ``rounds``, whose features compete with the others: when all are chosen, the
        one whose removal costs least leaves, and so on until ``rounds`` are left and further
        down to one, which makes the path. Costs time and finds better features than the forward
        rounds alone.
    criterion : {"gradient", "orthogonal", "line", "column", "full"}, default "gradient"
        How a candidate is scored (paper, algorithm 1 and §3.1); "orthogonal" is ours, see
        :class:`visionshare.search.orthogonal.Orthogonal`.
    criterion_options : dict, optional
        Arguments of the criterion, such as ``{"floor": 0.3}`` for "orthogonal".
    search : {"exhaustive", "random", "screened", "sampled", "stumps"}, default "exhaustive"
        Which candidates are scored; "sampled" takes fresh draws of a continuous family each round,
        see :class:`visionshare.store.DrawnColumns`; "stumps" is exhaustive for all thresholds of
        :class:`visionshare.generators.stumps.StumpColumns`.
    search_options : dict, optional
        Arguments of the search, such as ``{"fraction": 0.1, "keep": 128}`` for "screened".
        Every search takes ``{"per_mac": True}``, which divides the scores by the
        multiply-accumulates that a candidate adds; for columns of a family.
    margin : float, default 1.0
        Margin of the loss; 0 is the plain multinomial logistic loss.
    penalty : {"none", "ridge", "l1", "max"}, default "ridge"
        Penalty on the weights (paper, §3.3).
    alpha : float, default 1e-4
        λ of the penalty, on weights of scaled columns.
    beta : float, default 100.0
        β of the smoothed norms "l1" and "max".
    scaling : {"unit_variance", "max_abs", "none"}, default "unit_variance"
        Scaling of the columns; it travels with the weights.
    tol : float, default 0.0
        Stop when a round lowers the objective by less than this share of it.
    refit_tol : float, default 1e-6
        A refit has converged when a Newton step promises less than this share of the objective.
    max_iter : int, default 300
        Gradients of a refit at most.
    validation_fraction : float, default 0.0
        Share of the examples, drawn by class, that judges the rounds and teaches nothing.
    patience : int, optional
        With validation examples: stop after so many rounds without a lower error, and keep the
        best round.
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn.
    warm_start : bool, default False
        Go on from the path of the last ``fit`` on the same data.
    checkpoint : path-like, optional
        Folder that keeps each round; a run that was killed goes on from there, bit for bit.
    n_jobs : int, default 1
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, default 0
        Seed of the validation part and of random searches.
    progress : bool, default False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    support_ : ndarray of int
        Ids of the chosen features, in order of entry.
    coef_ : ndarray of shape (k, n_support), float64
        Weights of the features as they are (unscaled).
    intercept_ : ndarray of shape (k,), float64
    path_ : tuple of PathStep
        The classifier after every round.
    temperature_ : float
        Divides the scores in :meth:`predict_proba`.

    Notes
    -----
    Scores trained with a margin are over-confident. ``predict_proba`` divides them by a
    temperature fitted to the log loss of examples that did not train the weights: the
    validation examples where there are any, otherwise each third of the training examples
    scored by weights fitted anew to the other two (the features stay).

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import ShareBoost
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ShareBoost(rounds=20).fit(X[:1200], y[:1200])
    >>> len(model.support_), bool(model.score(X[1200:], y[1200:]) > 0.85)
    (20, True)
    """

    _identity_of_path: str
    _history_of_path: list[Round]

    def __init__(
        self,
        rounds: int = 75,
        *,
        n_backward: int = 0,
        criterion: str = "gradient",
        criterion_options: dict[str, Any] | None = None,
        search: str = "exhaustive",
        search_options: dict[str, Any] | None = None,
        margin: float = 1.0,
        penalty: str = "ridge",
        alpha: float = 1e-4,
        beta: float = 100.0,
        scaling: str = "unit_variance",
        tol: float = 0.0,
        refit_tol: float = 1e-6,
        max_iter: int = 300,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int = 1,
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self.rounds = rounds
        self.n_backward = n_backward
        self.criterion = criterion
        self.criterion_options = criterion_options
        self.search = search
        self.search_options = search_options
        self.margin = margin
        self.penalty = penalty
        self.alpha = alpha
        self.beta = beta
        self.scaling = scaling
        self.tol = tol
        self.refit_tol = refit_tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        validation: np.ndarray | None = None,
    ) -> ShareBoost:
        """Choose features and fit their weights.

        Parameters
        ----------
        X : array-like of shape (m, d), or Columns
            Examples by features, in memory or in a store.
        y : array-like of shape (m,)
            Classes.
        sample_weight : array-like of shape (m,), optional
            Weights of the examples, at least 0.
        validation : ndarray of bool, shape (m,), optional
            Examples that judge the rounds and teach nothing, instead of a drawn part.

        Returns
        -------
        ShareBoost

        Raises
        ------
        InputError
            If a parameter is out of range or the data has fewer than two classes.
        """
        settings = self._settings()
        columns, y_index, omega = self._examples(X, y, sample_weight)
        judged = self._judged(y_index, omega, validation)
        omega = np.where(judged, 0.0, omega)
        omega /= omega.sum()
        with thread_limit(self.n_jobs), ThreadPoolExecutor(resolve_jobs(self.n_jobs)) as threads:
            columns.n_jobs = resolve_jobs(self.n_jobs)
            columns.check_rounds(settings.rounds + settings.n_backward)
            columns.fit_scaling(self.scaling, omega)
            active = ActiveSet(
                y_index, omega, len(self.classes_), 16, columns.compute_dtype, threads
            )
            history = self._run(columns, active, settings, judged)
            self._finish(columns, active, settings, judged, history)
        return self

    def check_parameters(self) -> None:
        """Check all parameters without data.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._settings()

    def _settings(self) -> GreedySettings:
        for name, least in (("rounds", 1), ("max_iter", 1), ("n_backward", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
                raise InputError(name, value, f"a whole number of at least {least}")
        for name in ("tol", "refit_tol", "margin"):
            value = getattr(self, name)
            if not np.isfinite(value) or value < 0:
                raise InputError(name, value, "a finite number of at least 0")
        if not 0 <= self.validation_fraction < 1:
            raise InputError("validation_fraction", self.validation_fraction, "a share in [0, 1)")
        if self.scaling not in ("unit_variance", "max_abs", "none"):
            raise InputError("scaling", self.scaling, "'unit_variance' or 'max_abs' or 'none'")
        if self.patience is not None and self.patience < 1:
            raise InputError("patience", self.patience, "a number of rounds of at least 1, or None")
        try:
            criterion = make_criterion(self.criterion, **(self.criterion_options or {}))
        except TypeError as error:
            raise InputError(
                "criterion_options",
                self.criterion_options,
                f"arguments of the criterion ({error})",
            ) from None
        return GreedySettings(
            rounds=int(self.rounds),
            loss=MulticlassLogistic(self.margin),
            penalty=make_penalty(self.penalty, self.alpha, self.beta),
            criterion=criterion,
            search=search_of(self),
            tol=self.tol,
            refit_tol=self.refit_tol,
            max_iter=int(self.max_iter),
            patience=self.patience,
            n_backward=int(self.n_backward),
        )

    def _examples(
        self, X: np.ndarray | Columns, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Columns, np.ndarray, np.ndarray]:
        if isinstance(X, Columns):
            columns: Columns = X
            y = np.asarray(y)
            if y.shape != (columns.shape[0],):
                raise InputError("y", y.shape, f"one class for each of {columns.shape[0]} examples")
            self.n_features_in_ = columns.shape[1]
        else:
            table, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
            columns = ArrayColumns(table, dtype=str(table.dtype))
        check_classification_targets(y)
        self.classes_, y_index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("y", "one class", "examples of two classes or more")
        omega = weights_of(sample_weight, y, self.class_weight)
        return columns, y_index, omega

    def _judged(
        self, y: np.ndarray, omega: np.ndarray, validation: np.ndarray | None
    ) -> np.ndarray:
        if validation is not None:
            judged = np.asarray(validation)
            if judged.dtype != bool or judged.shape != y.shape:
                raise InputError("validation", judged.shape, f"a mask of shape {y.shape}")
        else:
            judged = omega > 0
            judged[judged] = stratified_mask(y[judged], self.validation_fraction, self.random_state)
        if not (omega * ~judged).any():
            raise InputError("validation", "all examples", "some examples left to train on")
        return judged

    def _identity(self, columns: Columns, active: ActiveSet, judged: np.ndarray) -> str:
        settings = {
            name: value for name, value in self.get_params().items() if name not in _NOT_OF_THE_PATH
        }
        text = json.dumps([settings, columns.fingerprint], sort_keys=True, default=str)
        held = np.frombuffer(text.encode(), np.uint8)
        return array_fingerprint(held, active.y, active.omega, judged)

    def _run(
        self, columns: Columns, active: ActiveSet, settings: GreedySettings, judged: np.ndarray
    ) -> list[Round]:
        identity = self._identity(columns, active, judged)
        history: list[Round] = []
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = Checkpoint(self.checkpoint, identity, Round)
            history = checkpoint.load()
        elif self.warm_start and getattr(self, "_identity_of_path", None) == identity:
            history = list(self._history_of_path)
        history = history[: settings.rounds + settings.n_backward]
        pool = Pool(columns)
        rounds = greedy_rounds(pool, active, settings, judged, history)
        if self.progress:
            from tqdm import tqdm

            total = settings.rounds + settings.n_backward
            rounds = tqdm(rounds, "rounds", total, initial=len(history))
        for done in rounds:
            history.append(done)
            if checkpoint is not None:
                checkpoint.save(done, len(history))
        if not history:
            raise InputError("X", "constant or useless columns", "a column that separates classes")
        self._identity_of_path, self._history_of_path = identity, history
        return history

    def _finish(
        self,
        columns: Columns,
        active: ActiveSet,
        settings: GreedySettings,
        judged: np.ndarray,
        history: list[Round],
    ) -> None:
        if len(history) > settings.rounds:
            history = self._backward(active, settings, judged, history)
            chosen = np.concatenate([r.features for r in history])
            active.keep(np.arange(0))
            active.append(columns.columns_of(chosen))
        if self.patience is not None and judged.any():
            history = history[: best_round(history)]
        self.path_ = path_steps(columns, history)
        self.support_ = np.concatenate([r.features for r in history]).astype(np.int64)
        active.keep(np.arange(len(self.support_)))
        W = history[-1].W
        self.coef_, self.intercept_ = unscaled(W, columns, self.support_)
        self.temperature_ = self._temperature(columns, active, settings, judged, W)
        self.n_iter_ = len(history)

    def _backward(
        self,
        active: ActiveSet,
        settings: GreedySettings,
        judged: np.ndarray,
        history: list[Round],
    ) -> list[Round]:
        steps = backward_steps(active, settings, history, judged)
        if self.progress:
            from tqdm import tqdm

            steps = tqdm(steps, "backward", len(history))
        return nested_path(history, list(steps)[-settings.rounds :])

    def _temperature(
        self,
        columns: Columns,
        active: ActiveSet,
        settings: GreedySettings,
        judged: np.ndarray,
        W: np.ndarray,
    ) -> float:
        y = active.y.reshape(-1)[: active.m]
        omega = active.omega.reshape(-1)[: active.m]
        scores = active.flat(active.scores(W))
        if judged.any():
            return fit_temperature(scores[judged], y[judged], np.ones(int(judged.sum())))
        rows = columns.columns_of(self.support_[:8], scaled=False).T
        folds = row_folds(rows, _FOLDS)
        held = cross_fitted_scores(
            active, settings.loss, settings.penalty, W, folds, settings.refit_tol
        )
        return fit_temperature(scores if held is None else held, y, omega)

    def _scores(self, X: np.ndarray | Columns) -> np.ndarray:
        return chosen_columns(self, X) @ self.coef_.T + self.intercept_

    def decision_function(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return scores (m, k); for two classes, as in scikit-learn, their difference (m,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return the class of each example."""
        check_is_fitted(self)
        return predict_labels(self.classes_, self._scores(X))

    def predict_proba(self, X: np.ndarray | Columns) -> np.ndarray:
        """Return probabilities (m, k), the softmax of scores / ``temperature_``."""
        return softmax(self._scores(X), self.temperature_)

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
        """
        check_is_fitted(self)
        return compact_classifier(self, family, classes, metadata)
