"""Mixed-norm multinomial regression: the convex way to few features that all classes share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.learners.column_generation import GenerationSettings
from visionshare.learners.task_estimators import TaskClassifier
from visionshare.learners.task_learner import Generated
from visionshare.learners.task_targets import TargetsOf
from visionshare.solvers import Solver, TaskProblem


@dataclass(eq=False, repr=False)
class MixedNormClassifier(TaskClassifier):
    """Multinomial regression with the mixed norm ‖W‖_{q,1}.

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
    n_entering : int, default 50
        Violators that enter at once at most.
    solver : {"newton", "fista", "gradboost"} or callable, default "newton"
        How the problem is solved; "newton" is FISTA for q other than 1 and 2.
    scaling : {"unit_norm", "unit_variance", "max_abs", "none"}, default "unit_norm"
    tol : float, default 1e-3
        Columns that have not entered violate optimality by less than this fraction of λ.
    refit_tol : float, default 1e-4
        KKT residual, as a fraction of λ.
    max_iter : int, default 3000
        Iterations at most.
    warm_start : bool, default False
        Begin with the weights of the last ``fit``, where the columns are the same.
    calibrate : bool, default True
        Whether to fit ``temperature_``, which costs three more solves, each without a third of the
        examples; otherwise it is 1.
    class_weight, n_jobs
        As in :class:`ShareBoost`.

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

    # Its gradient is that of the intercepts alone: no weights need to be solved for.
    _quickest: ClassVar[dict[str, Any]] = {"calibrate": False}
    loss = "multinomial"
    # Rounds end by themselves: there are only so many violators.
    rounds = 100_000

    q: float = float("inf")
    alpha: float = 1.0
    _: KW_ONLY
    n_entering: int = 50
    solver: str | Callable[[TaskProblem], Solver] = "newton"
    scaling: str = "unit_norm"
    tol: float = 1e-3
    refit_tol: float = 1e-4
    max_iter: int = 3000
    class_weight: dict[Any, float] | str | None = None
    warm_start: bool = False
    calibrate: bool = True
    n_jobs: int | None = 1

    def _settings(self) -> GenerationSettings:
        if self.alpha is None:
            raise InputError("alpha", None, "a finite number above 0")
        return super()._settings()

    def _learn(
        self, columns: Columns, targets: TargetsOf, executor: Executor, *examples: np.ndarray
    ) -> Generated:
        end = super()._learn(columns, targets, executor, *examples)
        # The first solve, of the intercepts, counts too.
        self.n_iter_ += 1
        return end
