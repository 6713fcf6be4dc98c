"""Boosting with structural sparsity: GradBoost and AdaBoost with norms that make weights zero."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.learners.column_generation import GenerationSettings
from visionshare.learners.parameters import check_flags
from visionshare.learners.task_estimators import TaskClassifier, TaskRegressor
from visionshare.learners.task_learner import TaskLearner
from visionshare.losses import TaskLoss
from visionshare.penalties import RowPenalty, make_norm
from visionshare.search import Search, TaskCriterion
from visionshare.solvers import (
    AdaBoost,
    Solver,
    TaskProblem,
    solver_maker,
)


@dataclass(eq=False, repr=False)
class _Boosting(TaskLearner):
    """What sets boosting apart from other column generation: the penalty."""

    @property
    def _quickest(self) -> dict[str, Any]:  # type: ignore[override]
        # No refit at an alpha of nearly 0: the one update of a sequential round.
        quickest = {"criterion": "violation", "corrective": False, "solver": "gradboost"}
        if not np.isfinite(self._task_loss().curvature):
            quickest |= {"corrective": True, "solver": "fista"}
        return quickest | {"calibrate": False}

    loss: str | TaskLoss = "multinomial"
    _: KW_ONLY
    penalty: str | RowPenalty = "l1/l2"
    alpha: float = 1.0
    solver: str | Callable[[TaskProblem], Solver] = "gradboost"
    corrective: bool = True
    n_entering: int = 30
    criterion: str | TaskCriterion = "bound"
    rounds: int = 200
    max_features: int | None = None
    search: str | Search = "exhaustive"
    search_options: dict[str, Any] | None = None
    scaling: str = "unit_variance"
    tol: float = 1e-3
    refit_tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    n_jobs: int | None = 1
    random_state: int = 0
    progress: bool = False

    def _norm(self) -> RowPenalty:
        return make_norm(self.penalty)

    def _settings(self) -> GenerationSettings:
        maker = solver_maker(self.solver)
        if self.alpha is None:
            raise InputError("alpha", None, "a finite number above 0")
        check_flags(self, "corrective")
        if not self.corrective and not hasattr(getattr(maker, "func", maker), "step"):
            accepted = "'adaboost' or 'gradboost', to make one update a round"
            raise InputError("solver", self.solver, accepted)
        return super()._settings()

    def _check_solver(self, loss: TaskLoss, norm: RowPenalty) -> None:
        if solver_maker(self.solver) is AdaBoost and norm.q not in (1, np.inf):
            accepted = "'l1' or 'l1/linf', for AdaBoost"
            raise InputError("penalty", self.penalty, accepted)
        super()._check_solver(loss, norm)


@dataclass(eq=False, repr=False)
class StructuralBoostingClassifier(TaskClassifier, _Boosting):
    """Boosting with a structured penalty, which adds and prunes features and stops by itself.

    Minimizes Σ_i L(y_i, W x_i + b) + λ Ω(W). A round finds the candidates whose update lowers a
    bound on the objective most, among those whose gradient exceeds λ in the dual norm, and then
    re-optimizes all weights (totally corrective) or makes that update alone (sequential). Weights
    may become zero again; where no candidate is left, boosting ends.

    Parameters
    ----------
    loss : {"multinomial", "logistic", "exponential", "squared_hinge", "squared"} or TaskLoss, \
default "multinomial"
        All but "multinomial" make a task of each class, or learn the tasks given to :meth:`fit`;
        so does every loss where y has several labels. AdaBoost bounds the first three, and the
        exponential loss is for "adaboost", or for criterion "violation" with "newton", "fista" or
        "admm".
    penalty : {"l1/l2", "l1/linf", "l1", "l2^2"} or RowPenalty, default "l1/l2"
        Ω: the norms inside and across features; or ½‖W‖². AdaBoost bounds carry ℓ1 and ℓ1/ℓ∞. With
        "l2^2" no weight is zero and induction ends with ``rounds``, ``max_features`` or ``tol``.
    alpha : float, default 1.0
        λ. The loss is a sum over examples: it grows with their number.
    solver : {"gradboost", "adaboost", "newton", "fista", "admm"} or callable, default "gradboost"
        Which bound is minimized; the last three are other solvers of the totally corrective
        problem, for the quadratic bound.
    corrective : bool, default True
        Re-optimize all weights in every round, or make one update of one feature's weights.
    n_entering : int, default 30
        Candidates that enter in a totally corrective round at most.
    criterion : {"bound", "violation"} or TaskCriterion, default "bound"
        Which of the candidates that violate optimality enter: those with the greatest decrease of
        the bound, or of the largest dual norm.
    rounds : int, default 200
        Rounds at most; sequential boosting needs far more of them.
    max_features : int, optional
        Stop when so many features have weights.
    search : str or Search, default "exhaustive"
        "products" over :class:`visionshare.generators.monomials.ProductColumns` adds the products
        of what has entered; its ``entries`` must have room for ``rounds`` times ``n_entering``.
    scaling : {"unit_variance", "max_abs", "unit_norm", "none"}, default "unit_variance"
        The paper leaves it open. Columns of mean 0 leave the intercepts nearly alone, so that
        coordinate steps need a fraction of the sweeps.
    tol : float, default 1e-3
        A candidate enters only if its dual norm exceeds λ by more than this fraction.
    refit_tol : float, default 1e-3
        KKT residual of the weights, as a fraction of λ.
    max_iter : int, default 1000
        Sweeps a round at most.
    calibrate : bool, default True
        Fit a temperature for :meth:`predict_proba`, which needs three more solves.
    search_options, class_weight, warm_start, checkpoint, n_jobs, random_state, progress
        As in :class:`GroupFeatureClassifier`, whose attributes it has.

    References
    ----------
    J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import StructuralBoostingClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StructuralBoostingClassifier(alpha=40.0).fit(X[:600], y[:600])
    >>> len(model.support_) < 50, bool(model.score(X[600:], y[600:]) > 0.85)
    (True, True)
    """

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None
    calibrate: bool = True

    def _settings(self) -> GenerationSettings:
        check_flags(self, "calibrate")
        return super()._settings()


@dataclass(eq=False, repr=False)
class StructuralBoostingRegressor(TaskRegressor, _Boosting):
    """Boosting of features for numbers, with a structured penalty.

    Minimizes Σ_i L(y_i − W x_i − b) + λ Ω(W), for one target or several.

    Parameters
    ----------
    loss : {"insensitive", "squared"} or TaskLoss, default "insensitive"
        "insensitive" is ln(1 + e^{z−ε}) + ln(1 + e^{−z−ε}) of the difference z; AdaBoost bounds it.
    eps : float, default 0.1
        ε of the insensitive loss.
    penalty : {"l1", "l1/l2", "l1/linf", "l2^2"} or RowPenalty, default "l1"
    alpha, solver, corrective, n_entering, criterion, rounds, max_features, search, \
search_options, scaling, tol, refit_tol, max_iter, warm_start, checkpoint, n_jobs, random_state, \
progress
        See :class:`StructuralBoostingClassifier`; the solver is "adaboost", as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import StructuralBoostingRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 30))
    >>> model = StructuralBoostingRegressor(alpha=1.0).fit(X, 9 * X[:, 4] - 5 * X[:, 17] + 1)
    >>> sorted(model.support_.tolist())
    [4, 17]
    """

    _losses = ("insensitive", "squared")

    loss: str | TaskLoss = "insensitive"
    _: KW_ONLY
    eps: float = 0.1
    penalty: str | RowPenalty = "l1"
    solver: str | Callable[[TaskProblem], Solver] = "adaboost"
