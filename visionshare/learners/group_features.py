"""GrFL: few features of a huge or endless pool, found by column generation."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from visionshare.learners.task_estimators import TaskClassifier, TaskRegressor
from visionshare.learners.task_learner import TaskLearner
from visionshare.losses import TaskLoss
from visionshare.search import Search
from visionshare.solvers import Solver, TaskProblem


@dataclass(eq=False, repr=False)
class _GroupFeatures(TaskLearner):
    """The settings of the classifier and the regressor."""

    loss: str | TaskLoss = "squared_hinge"
    _: KW_ONLY
    q: float = 2.0
    alpha: float | None = 1.0
    shared_alpha: float | None = None
    rounds: int = 200
    max_features: int | None = None
    n_entering: int = 1
    search: str | Search = "exhaustive"
    search_options: dict[str, Any] | None = None
    patience: int = 1
    solver: str | Callable[[TaskProblem], Solver] = "newton"
    scaling: str = "unit_norm"
    tol: float = 1e-3
    gap_tol: float = 0.0
    refit_tol: float = 1e-4
    max_iter: int = 3000
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    random_state: int = 0
    progress: bool = False


@dataclass(eq=False, repr=False)
class GroupFeatureClassifier(TaskClassifier, _GroupFeatures):
    """Classifier of few shared features, found by column generation (GrFL).

    Minimizes Σ_t Σ_i L(y_it f_t(x_i)) + λ_s ‖w̃‖₁ + λ_p Σ_J ‖W_J‖_q over weights of all features
    of a pool, one task a class (one for two classes). Only features that violate optimality
    enter; those whose weights become zero leave.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic", "exponential", "squared", "multinomial"} or TaskLoss, \
default "squared_hinge"
        By name or as an object; "multinomial" couples the scores of all classes, and is "logistic"
        for two.
    q : float, default 2.0
        Norm inside a feature's (or group's) weights: 1, 2 or infinity.
    alpha : float or None, default 1.0
        λ_p; None: no weights of single tasks.
    shared_alpha : float or None, default None
        λ_s; None: no weights that all tasks share.
    rounds : int, default 200
        Rounds at most.
    max_features : int, optional
        Stop when so many features have weights.
    n_entering : int, default 1
        Candidates that enter in a round at most, all violators: more of them make fewer rounds.
    search : {"exhaustive", "random", "screened", "sampled"} or Search, default "exhaustive"
        Which candidates are looked at; "sampled" takes fresh draws of a continuous family, see
        :class:`visionshare.store.DrawnColumns`.
    search_options : dict, optional
        Arguments of the search, such as ``{"keep": 10, "steps": 5}`` for "sampled": the draws of a
        round that are scored on all examples, and steps uphill that the best take before they
        enter.
    patience : int, default 1
        Stop after this many consecutive searches that find no violator, or reach ``gap_tol``.
    solver : {"newton", "fista", "admm"} or callable, default "newton"
        How the restricted master problem is solved: a name, or what makes a solver of a problem,
        such as ``functools.partial(visionshare.solvers.Admm, as_published=True)`` for the paper's
        own settings.
    scaling : {"unit_norm", "unit_variance", "max_abs", "none"}, default "unit_norm"
    tol : float, default 1e-3
        A candidate enters only if it violates optimality by more than this fraction of λ. Where
        none does, the objective is above that of all candidates by at most this fraction of it.
    gap_tol : float, default 0.0
        Stop when the duality gap is at most this fraction of the objective; 0 never stops this
        way. Otherwise it has to be at least ``tol``. Searches that score only some candidates,
        such as "sampled", estimate the gap from these.
    refit_tol : float, default 1e-4
        KKT residual of the restricted master problem, as a fraction of λ.
    max_iter : int, default 3000
        Iterations of the solver at most.
    warm_start : bool, default False
        Begin with the candidates and weights of the last ``fit``, of another alpha for example,
        where the columns are the same and these have no more features than ``max_features``.
    class_weight, checkpoint, n_jobs, random_state, progress
        As in :class:`ShareBoost`.

    Attributes
    ----------
    coef_ : ndarray of shape (T, n_support), float64
        Weights of the unscaled features: w_t + w̃.
    history_ : tuple of Round
        Every round: objective, violation, weights of scaled columns.
    stopped_by_ : {"optimal", "gap", "rounds", "max_features", "refit_tol", "max_iter"}
        See :func:`visionshare.learners.column_generation.ending`.
    path_ : tuple of PathStep
        The classifier after each round whose features are the first of ``support_``.
    classes_, support_, intercept_, temperature_
        As in :class:`ShareBoost`.

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

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None


@dataclass(eq=False, repr=False)
class GroupFeatureRegressor(TaskRegressor, _GroupFeatures):
    """Regression on few features, found by column generation (GrFL).

    Minimizes Σ_t Σ_i (y_it − f_t(x_i))² + λ_s ‖w̃‖₁ + λ_p Σ_J ‖W_J‖_q over weights of all features
    of a pool; each column of y is a task.

    Parameters
    ----------
    loss : {"squared", "insensitive"}, default "squared"
        "insensitive" is ln(1 + e^{z−ε}) + ln(1 + e^{−z−ε}) of the difference z.
    q, alpha, shared_alpha, rounds, max_features, n_entering, search, search_options, \
patience, solver, scaling, tol, gap_tol, refit_tol, max_iter, warm_start, checkpoint, \
n_jobs, random_state, progress
        See :class:`GroupFeatureClassifier`.
    eps : float, default 0.1
        ε of the insensitive loss.

    Attributes
    ----------
    support_, coef_, intercept_, history_, stopped_by_
        As in :class:`GroupFeatureClassifier`; of one target without a row for each.

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

    loss: str | TaskLoss = "squared"
    _: KW_ONLY
    eps: float = 0.1
