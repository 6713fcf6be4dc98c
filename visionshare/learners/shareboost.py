"""ShareBoost: a multiclass classifier of few features that all classes share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from visionshare.columns import Columns
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError
from visionshare.generators.checks import check_choice
from visionshare.learners.backward import backward_steps, nested_path
from visionshare.learners.base import Classifier
from visionshare.learners.calibration import (
    cross_fitted_scores,
    example_folds,
    held_out_temperature,
)
from visionshare.learners.checkpoint import History, run_identity, tracked
from visionshare.learners.greedy import GreedySettings, best_round, greedy_rounds
from visionshare.learners.parameters import (
    check_fraction,
    check_numbers,
    check_run,
    check_whole_numbers,
    checked_options,
)
from visionshare.learners.path import greedy_path, support_of
from visionshare.learners.rounds import Round
from visionshare.losses import MulticlassLogistic, checked_margin
from visionshare.penalties import Penalty, make_penalty
from visionshare.search import Criterion, Pool, Search, make_criterion
from visionshare.solvers import ActiveSet


@dataclass(eq=False, repr=False)
class ShareBoost(Classifier):
    """Greedy multiclass learning with shared features.

    Each round adds the feature, or the group of features, that promises most for all classes
    together, then refits the weights of all chosen features until they converge.

    Parameters
    ----------
    rounds : int, default 75
        Features, or groups of features, to choose at most.
    n_backward : int, default 0
        Rounds beyond ``rounds``, whose features compete with the others: when all are chosen, the
        one whose removal costs least leaves, and so on until ``rounds`` are left and further
        down to one, which makes the path. Costs time and finds better features than the forward
        rounds alone.
    criterion : {"gradient", "orthogonal", "line", "column", "full"} or Criterion, \
default "gradient"
        How a candidate is scored (paper, algorithm 1 and §3.1), by name or as an object such as
        ``Orthogonal(floor=0.3)``; "orthogonal" is ours, see
        :class:`visionshare.search.Orthogonal`.
    criterion_options : dict, optional
        Arguments of a criterion given by name, such as ``{"floor": 0.3}`` for "orthogonal".
    search : {"exhaustive", "random", "screened", "sampled", "stumps"} or Search, \
default "exhaustive"
        Which candidates are scored, by name or as an object such as ``Screened(keep=128)``;
        "sampled" takes fresh draws of a continuous family each round, see
        :class:`visionshare.store.DrawnColumns`; "stumps" is exhaustive for all thresholds of
        :class:`visionshare.generators.stumps.StumpColumns`.
    search_options : dict, optional
        Arguments of a search given by name, such as ``{"fraction": 0.1, "keep": 128}`` for
        "screened", ``{"keep": 10, "steps": 5}`` for "sampled": the draws of a round that are
        scored on all examples, and steps uphill that the best take before they enter. Every search
        takes ``{"per": "macs"}`` or ``{"per": "bytes"}``, which divides the scores by what a
        candidate adds to the cost of the classifier; for columns of a family.
    margin : float or array-like of shape (k, k), default 1.0
        Margin of the loss; 0 is the plain multinomial logistic loss. An array is Δ(y, c), what it
        costs to take class y (a row) for c, in the order of ``classes_``; its diagonal is not read.
    penalty : {"none", "ridge", "l1", "max"} or Penalty, default "ridge"
        Penalty on the weights (paper, §3.3), by name or as an object such as ``Ridge(1e-3)``,
        which has numbers of its own.
    alpha : float, default 1e-4
        λ of a penalty given by name, on weights of scaled columns.
    beta : float, default 100.0
        β of the smoothed norms "l1" and "max", given by name.
    scaling : {"unit_variance", "max_abs", "none"}, default "unit_variance"
        Scaling of the columns; it travels with the weights.
    tol : float, default 0.0
        Stop when a round lowers the objective by less than this fraction of it.
    refit_tol : float, default 1e-6
        A refit has converged when a Newton step promises less than this fraction of the objective.
    max_iter : int, default 300
        Gradients of a refit at most.
    validation_fraction : float, default 0.0
        Fraction of the examples, drawn by class, that validate the rounds and do not train.
    patience : int, optional
        With validation examples: stop after so many rounds without a lower error, and keep the
        best round.
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn.
    checkpoint : path-like, optional
        Folder that keeps each round; a run that was stopped resumes from there, bit for bit.
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
        Weights of the unscaled features.
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
    scored by weights refitted to the other two (the features stay).

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

    rounds: int = 75
    _: KW_ONLY
    n_backward: int = 0
    criterion: str | Criterion = "gradient"
    criterion_options: dict[str, Any] | None = None
    search: str | Search = "exhaustive"
    search_options: dict[str, Any] | None = None
    margin: float | Sequence[Sequence[float]] | np.ndarray = 1.0
    penalty: str | Penalty = "ridge"
    alpha: float = 1e-4
    beta: float = 100.0
    scaling: str = "unit_variance"
    tol: float = 0.0
    refit_tol: float = 1e-6
    max_iter: int = 300
    validation_fraction: float = 0.0
    patience: int | None = None
    class_weight: dict[Any, float] | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    random_state: int = 0
    progress: bool = False
    takes_partitions = True
    takes_sparse = True
    takes_moving_draws = True

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
            Examples that validate the rounds and do not train, instead of a drawn part.
        """
        settings = self._settings()
        examples = self._examples(X, y, sample_weight)
        given = checked_margin(self.margin)
        if isinstance(given, tuple) and len(given) != examples.n_classes:
            accepted = f"a number, or one for each pair of {examples.n_classes} classes"
            raise InputError("margin", f"{len(given)} classes", accepted)
        mask = self._validation_mask(examples.y, examples.omega, validation)
        omega = np.where(mask, 0.0, examples.omega)
        omega /= omega.sum()
        columns = examples.columns
        with self._threads(columns) as threads:
            columns.check_rounds(settings.rounds + settings.n_backward)
            self._check_costs(settings.search, columns)
            columns.fit_scaling(self.scaling, omega)
            active = columns.active_set(ActiveSet, examples.y, omega, examples.n_classes, threads)
            pool = Pool(columns)
            history = self._run(pool, active, settings, mask)
            self._finish(pool, active, settings, mask, history)
        return self

    def _settings(self) -> GreedySettings:
        check_run(self)
        check_whole_numbers(self, 1, "rounds", "max_iter")
        check_whole_numbers(self, 0, "n_backward")
        check_whole_numbers(self, 1, "patience", optional=True)
        check_numbers(self, "tol", "refit_tol")
        check_fraction("validation_fraction", self.validation_fraction, zero=True)
        check_choice("scaling", self.scaling, ("unit_variance", "max_abs", "none"))
        options = checked_options("criterion_options", self.criterion_options)
        return GreedySettings(
            rounds=int(self.rounds),
            loss=MulticlassLogistic(checked_margin(self.margin)),
            penalty=make_penalty(self.penalty, self.alpha, self.beta),
            criterion=make_criterion(self.criterion, **options),
            search=self._search(),
            tol=float(self.tol),
            refit_tol=float(self.refit_tol),
            max_iter=int(self.max_iter),
            patience=self.patience,
            n_backward=int(self.n_backward),
        )

    def _validation_mask(
        self, y: np.ndarray, omega: np.ndarray, validation: np.ndarray | None
    ) -> np.ndarray:
        if validation is not None:
            mask = np.asarray(validation)
            if mask.dtype != bool or mask.shape != y.shape:
                given = f"{mask.dtype} of shape {mask.shape}"
                raise InputError("validation", given, f"booleans of shape {y.shape}")
        else:
            mask = omega > 0
            mask[mask] = stratified_mask(y[mask], self.validation_fraction, self.random_state)
        if not (omega * ~mask).any():
            raise InputError("validation", "all examples", "some examples left to train on")
        return mask

    def _run(
        self, pool: Pool, active: ActiveSet, settings: GreedySettings, mask: np.ndarray
    ) -> list[Round]:
        history = History(
            Round,
            settings.rounds + settings.n_backward,
            self.checkpoint,
            lambda: self._identity(pool, active, settings, mask),
            self.progress,
        )
        left_out = active.of_examples(mask)
        rounds = history.collect(greedy_rounds(pool, active, settings, left_out, history.records))
        if not rounds:
            raise InputError("X", "constant or useless columns", "a column that separates classes")
        return rounds

    def _identity(
        self, pool: Pool, active: ActiveSet, settings: GreedySettings, mask: np.ndarray
    ) -> str:
        # No round depends on how many there are to be.
        loop = replace(settings, rounds=0, n_backward=0, patience=None)
        described = [loop, self.scaling, pool.columns.fingerprint]
        return run_identity(described, active.y, active.omega, mask)

    def _finish(
        self,
        pool: Pool,
        active: ActiveSet,
        settings: GreedySettings,
        mask: np.ndarray,
        history: list[Round],
    ) -> None:
        columns = pool.columns
        if len(history) > settings.rounds:
            left_out = active.of_examples(mask)
            steps = backward_steps(pool, active, settings, history, left_out)
            remainders = list(tracked(steps, "backward", len(history), 0, self.progress))
            history = nested_path(pool, history, remainders[-settings.rounds :])
            active.keep(np.arange(0))
            active.append(columns.columns_of(support_of(pool, history[-1].candidates)))
        if self.patience is not None and mask.any():
            history = history[: best_round(history)]
        last = history[-1]
        self.moved_ = columns.moved_draws
        self.path_ = greedy_path(pool, history)
        self.support_ = support_of(pool, last.candidates)
        self.coef_, self.intercept_ = columns.unscaled(last.coef, last.intercept, self.support_)
        self.n_iter_ = len(history)
        active.keep(np.arange(len(self.support_)))
        self.temperature_ = self._temperature(columns, active, settings, mask, last.W)

    def _temperature(
        self,
        columns: Columns,
        active: ActiveSet,
        settings: GreedySettings,
        mask: np.ndarray,
        W: np.ndarray,
    ) -> float:
        scores = active.scores(W)
        if mask.any():
            return held_out_temperature(active.reweighted(mask.astype(np.float64)), scores)
        folds = example_folds(active, columns, self.support_)
        left_out = cross_fitted_scores(
            active, settings.loss, settings.penalty, W, folds, settings.refit_tol
        )
        return held_out_temperature(active, scores if left_out is None else left_out)
