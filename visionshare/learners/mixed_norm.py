"""Mixed-norm multinomial regression: the convex way to few features that all classes share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.learners.column_generation import Generation
from visionshare.learners.group_features import GroupFeatureClassifier
from visionshare.learners.task_targets import Targets
from visionshare.search import Pool
from visionshare.solvers import TaskWeights

__all__ = ["MixedNormClassifier"]


class MixedNormClassifier(GroupFeatureClassifier):
    """Multinomial regression with ‖W‖_{q,1}, the norm that ShareBoost is compared with.

    Minimizes Σ_i ω_i L(x_i, y_i) + λ Σ_j ‖W_j‖_q over the weights of all columns, with the
    multinomial loss and free intercepts: :class:`GroupFeatureClassifier` with settings that end at
    the optimum of the whole pool. A whole path is :func:`visionshare.learners.regularization_path`.

    Parameters
    ----------
    q : float, default infinity
        ‖·‖_q of a column's weights: infinity is ‖W‖_{∞,1}, 2 the group lasso ‖W‖_{2,1}, 1 the
        lasso of all weights.
    alpha : float, default 1.0
        λ.
    working_set : {"violators", "all"}, default "violators"
        "all" solves for the weights of all columns at once; "violators" for those of columns that
        violate optimality, and again until none does. The optimum is the same.
    n_entering : int, default 50
        Violators that enter at once at most.
    solver : {"newton", "fista", "gradboost"}, default "newton"
        How the problem is solved; "newton" is FISTA for q other than 1 and 2.
    scaling : {"unit_norm", "unit_variance", "max_abs", "none"}, default "unit_norm"
    tol : float, default 1e-3
        Columns that are left out violate optimality by less than this share of λ.
    refit_tol : float, default 1e-4
        KKT residual, as a share of λ.
    max_iter : int, default 3000
        Iterations at most.
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn.
    warm_start : bool, default False
        Begin with the weights of the last ``fit``, where the columns are the same.
    calibrate : bool, default True
        Whether to fit ``temperature_``, which costs three more solves, each without a third of the
        examples; otherwise it is 1.
    n_jobs : int, default 1
        Threads; -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    classes_, support_, coef_, intercept_, history_, path_, temperature_
        See :class:`GroupFeatureClassifier`.
    n_iter_ : int
        Solves of the problem restricted to the working set.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass learning with
    feature sharing", NIPS 2011, equation 5; J. Duchi, Y. Singer, "Boosting with structural
    sparsity", ICML 2009, for the norms.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import MixedNormClassifier
    >>> from visionshare.learners import regularization_path
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = MixedNormClassifier(2, calibrate=False)
    >>> path = regularization_path(learner, X[:200] / 16, y[:200], n=3, least=0.4)
    >>> [len(model.support_) for model in path]
    [0, 13, 24]
    """

    loss = "multinomial"
    shared_alpha = None
    # Rounds end by themselves: there are only so many violators.
    rounds = 100_000
    max_features = None
    search = "exhaustive"
    search_options = None
    patience = 1
    checkpoint = None
    random_state = 0
    progress = False

    def __init__(
        self,
        q: float = float("inf"),
        alpha: float = 1.0,
        *,
        working_set: str = "violators",
        n_entering: int = 50,
        solver: str = "newton",
        scaling: str = "unit_norm",
        tol: float = 1e-3,
        refit_tol: float = 1e-4,
        max_iter: int = 3000,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        calibrate: bool = True,
        n_jobs: int = 1,
    ) -> None:
        self.q = q
        self.alpha = alpha
        self.working_set = working_set
        self.n_entering = n_entering
        self.solver = solver
        self.scaling = scaling
        self.tol = tol
        self.refit_tol = refit_tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    def _settings(self) -> Any:
        if self.working_set not in ("violators", "all"):
            raise InputError("working_set", self.working_set, "'violators' or 'all'")
        if self.alpha is None:
            raise InputError("alpha", None, "a finite number above 0")
        return super()._settings()

    def _learn(self, columns: Columns, targets: Targets, omega: np.ndarray, y: np.ndarray) -> None:
        super()._learn(columns, targets, omega, y)
        # The first solve counts: with all columns in the working set it is the only one.
        self.n_iter_ += 1

    def _start(self, columns: Columns, targets: Targets) -> Generation | None:
        """Return the end of the last fit; with all columns in the working set, zeros for them."""
        last = super()._start(columns, targets)
        if self.working_set != "all":
            return last
        pool = Pool(columns)
        candidates = np.flatnonzero(~pool.flat())
        held = [pool.features(c) for c in candidates]
        ids = np.concatenate([np.empty(0, np.int64), *held])
        weights = TaskWeights(
            np.zeros((len(ids), targets.n_tasks)), np.zeros(len(ids)), np.zeros(targets.n_tasks)
        )
        if last is not None:
            before = [pool.features(c) for c in last.candidates]
            place = {int(j): i for i, j in enumerate(ids)}
            rows = [place[int(j)] for j in np.concatenate([np.empty(0, np.int64), *before])]
            weights.W[rows], weights.b[:] = last.W, last.b
        none = np.empty(0, np.int64)
        return Generation(
            0, 0, none, candidates, 0.0, weights.W, weights.shared, weights.b, np.inf, np.inf, 0.0
        )

    def alpha_max(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        tasks: np.ndarray | None = None,
    ) -> float:
        """Return λ_max, the least alpha that leaves all weights at 0.

        Parameters
        ----------
        X, y, sample_weight, tasks
            As in ``fit``.
        """
        # Its gradient is that of the intercepts alone: no weights need to be solved for.
        alone = clone(self).set_params(working_set="violators", calibrate=False)
        return super(MixedNormClassifier, alone).alpha_max(X, y, sample_weight, tasks=tasks)
