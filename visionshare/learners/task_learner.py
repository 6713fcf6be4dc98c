"""Learners of tasks by column generation: their settings, the loop and its result."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone

from visionshare.columns import Columns
from visionshare.errors import InputError
from visionshare.generators.checks import check_choice
from visionshare.learners.base import Learner
from visionshare.learners.checkpoint import History, run_identity
from visionshare.learners.column_generation import GenerationSettings, ending, generate, was_cut
from visionshare.learners.parameters import (
    check_fraction,
    check_numbers,
    check_run,
    check_whole_numbers,
)
from visionshare.learners.path import support_of
from visionshare.learners.rounds import Round, task_weights
from visionshare.learners.task_targets import Targets, TargetsOf
from visionshare.losses import Multinomial, TaskLoss, make_task_loss
from visionshare.penalties import GroupNorm, RowPenalty
from visionshare.search import (
    TASK_CRITERIA,
    LargestDecrease,
    PerCostSearch,
    Pool,
    Search,
    TaskCriterion,
)
from visionshare.solvers import (
    AdaBoost,
    Admm,
    GradBoost,
    Solver,
    TaskProblem,
    check_quadratic_bound,
    checked_importance,
    polish,
    solver_maker,
)

# Alpha at which all candidates violate optimality, for targets and weights of about 1.
_TINY = 1e-6
# Iterations that the intercepts alone need at most.
_INTERCEPTS = 100
_SCALINGS = ("unit_norm", "unit_variance", "max_abs", "none")


class Generated(NamedTuple):
    """Where column generation ended: its pool and the problem of the last round."""

    pool: Pool
    problem: TaskProblem


class TaskLearner(Learner):
    """What learners by column generation share."""

    takes_partitions = True
    takes_sparse = True
    takes_moving_draws = True
    _losses: ClassVar[tuple[str, ...]]
    # Further settings with which a learner looks for its largest violation at least cost.
    _quickest: ClassVar[dict[str, Any]] = {}
    # Of rounds in a row that let nothing enter: where next to no penalty holds the weights and
    # classes can be separated, the minimum is far away, or there is none.
    _most_iterations: ClassVar[float] = np.inf

    loss: str | TaskLoss
    eps: float = 0.1
    q: float = 2.0
    alpha: float | None
    shared_alpha: float | None = None
    criterion: str | TaskCriterion = "violation"
    corrective: bool = True
    rounds: int
    max_features: int | None = None
    n_entering: int
    search: str | Search = "exhaustive"
    search_options: dict[str, Any] | None = None
    patience: int = 1
    solver: str | Callable[[TaskProblem], Solver]
    warm_start: bool
    scaling: str
    tol: float
    gap_tol: float = 0.0
    refit_tol: float
    max_iter: int
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int = 0
    progress: bool = False

    history_: tuple[Round, ...]

    def _settings(self) -> GenerationSettings:
        check_run(self)
        check_whole_numbers(self, 1, "rounds", "max_iter", "patience", "n_entering")
        check_whole_numbers(self, 1, "max_features", optional=True)
        check_numbers(self, "tol", "refit_tol", "eps")
        check_numbers(self, "alpha", "shared_alpha", positive=True, optional=True)
        self._check_gap()
        if self.alpha is None and self.shared_alpha is None:
            raise InputError("alpha", None, "a number for alpha, shared_alpha or both")
        if isinstance(self.loss, str):
            check_choice("loss", self.loss, self._losses)
        check_choice("scaling", self.scaling, _SCALINGS)
        solver = solver_maker(self.solver)
        if self.loss == "multinomial" and self.solver == "admm":
            raise InputError("solver", self.solver, "another one, for the multinomial loss")
        self._check_solver(self._task_loss(), self._norm())
        return GenerationSettings(
            rounds=int(self.rounds),
            max_features=self.max_features,
            n_entering=int(self.n_entering),
            search=self._search(),
            tol=float(self.tol),
            patience=int(self.patience),
            refit_tol=float(self.refit_tol),
            max_iter=int(self.max_iter),
            criterion=TASK_CRITERIA.make(self.criterion),
            solver=solver,
            corrective=self.corrective,
            most_iterations=self._most_iterations,
            gap_tol=float(self.gap_tol),
        )

    def _check_gap(self) -> None:
        """Check that what ends the rounds bounds the gap, and that searches know the gap."""
        check_fraction("gap_tol", self.gap_tol, zero=True)
        if 0 < self.gap_tol < self.tol:
            raise InputError("gap_tol", self.gap_tol, f"0, or at least tol ({self.tol:g})")
        if self.gap_tol and isinstance(self._search(), PerCostSearch):
            raise InputError("gap_tol", self.gap_tol, "0, for a search by cost")

    def _check_solver(self, loss: TaskLoss, norm: RowPenalty) -> None:
        """Check that the solver, and what the criterion bounds, carry the loss and the norm."""
        maker: Any = solver_maker(self.solver)
        # A class of solvers may come with settings.
        maker = getattr(maker, "func", maker)
        is_bounded = maker in (AdaBoost, GradBoost)
        if is_bounded and self.shared_alpha is not None:
            accepted = "None, with solver 'gradboost' or 'adaboost'"
            raise InputError("shared_alpha", self.shared_alpha, accepted)
        if maker is AdaBoost:
            checked_importance(loss, norm)
        elif is_bounded or isinstance(TASK_CRITERIA.make(self.criterion), LargestDecrease):
            check_quadratic_bound(loss, norm)

    def _norm(self) -> RowPenalty:
        return GroupNorm(self.q)

    def _make_solver(self, problem: TaskProblem) -> Solver:
        return solver_maker(self.solver)(problem)

    def _task_loss(self) -> TaskLoss:
        if self.loss == "insensitive":
            return make_task_loss(self.loss, eps=float(self.eps))
        # Two classes have one score: their multinomial loss is the logistic one.
        return make_task_loss("logistic" if self.loss == "multinomial" else self.loss)

    def _problem(
        self, targets: TargetsOf, columns: Columns, executor: Executor | None
    ) -> TaskProblem:
        make = _ProblemMaker(
            targets.make,
            self._task_loss(),
            self._norm(),
            np.inf if self.alpha is None else float(self.alpha),
            np.inf if self.shared_alpha is None else float(self.shared_alpha),
            columns.compute_dtype,
        )
        return columns.task_problem(make, targets.examples, executor)

    def _given_columns(self, columns: Columns) -> Columns:
        """Refuse what needs the examples in one place, before any work."""
        if not columns.partitioned:
            return columns
        if self.solver == "admm" or solver_maker(self.solver) is Admm:
            accepted = "'newton', 'fista', 'gradboost' or 'adaboost' with columns in partitions"
            raise InputError("solver", self.solver, accepted)
        return columns

    def _warn_of_no_optimum(self, kkt: float) -> None:
        """Say that the rounds ended before the optimum, and what to do."""
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the weights are not optimal: their KKT residual is {kkt:.2g} of alpha, not "
            f"refit_tol={self.refit_tol:g}, after {self.max_iter} iterations a round; raise alpha "
            f"(now {self.alpha}), which data of separable classes need, or max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )

    def _learn(
        self, columns: Columns, targets: TargetsOf, executor: Executor, *examples: np.ndarray
    ) -> Generated:
        """Run the loop and keep its rounds; ``examples`` are what identifies its inputs."""
        settings = self._settings()
        problem = self._problem(targets, columns, executor)
        entering = settings.n_entering if settings.corrective else 1
        columns.check_rounds(settings.rounds, entering, settings.patience)
        self._check_costs(settings.search, columns)
        # An example counts in the scaling as it does in the task that it counts most in.
        omega = examples[0] if examples[0].ndim == 1 else examples[0].max(axis=1)
        columns.fit_scaling(self.scaling, omega)
        pool = Pool(columns)
        history = self._run(pool, problem, targets, settings, examples)
        if self.corrective:
            history[-1] = _polished(problem, history[-1], centered=targets.coupled)
        self.history_ = tuple(history)
        self.moved_ = columns.moved_draws
        self.candidates_ = history[-1].candidates
        self.support_ = support_of(pool, self.candidates_)
        self.n_iter_ = history[-1].number
        self.stopped_by_ = ending(history, settings, len(self.support_))
        if self.stopped_by_ == "max_iter" and was_cut(history, settings):
            self._warn_of_no_optimum(history[-1].gap)
        return Generated(pool, problem)

    def _unscaled(self, end: Generated) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercepts of unscaled columns."""
        last = self.history_[-1]
        return end.pool.columns.unscaled(last.coef + last.shared, last.intercept, self.support_)

    def _run(
        self,
        pool: Pool,
        problem: TaskProblem,
        targets: TargetsOf,
        settings: GenerationSettings,
        examples: tuple[np.ndarray, ...],
    ) -> list[Round]:
        start = self._start(pool, targets)
        order = np.arange(problem.n_rows) if problem.order is None else problem.order

        def identity() -> str:
            # No round depends on how many there are to be.
            loop = replace(settings, rounds=0, max_features=None, patience=1)
            problem_settings = [problem.loss, problem.norm, problem.alpha, problem.shared_alpha]
            if targets.coupled:
                problem_settings[0] = "multinomial"
            described = [loop, *problem_settings, self.scaling]
            described.append(pool.columns.fingerprint)
            if settings.gap_tol:
                described.append(settings.gap_tol)
            begun = [] if start is None else [start.candidates, start.coef, start.intercept]
            if start is not None and problem.sharing:
                begun.append(start.shared)
            return run_identity(described, order, *examples, *begun)

        most = settings.rounds + 1
        history = History(Round, most, self.checkpoint, identity, self.progress)
        earlier = history.records
        for i, record in enumerate(earlier):
            if record.coef.shape[1] >= (settings.max_features or np.inf):
                # The rounds that come after the first with so many columns do not count.
                del earlier[i + 1 :]
        begun = start if start is not None or earlier else self._before(problem)
        solver = self._make_solver(problem)
        return history.collect(generate(pool, problem, solver, settings, earlier, begun))

    def _before(self, problem: TaskProblem) -> Round | None:
        """Return where a run without a start begins; None: with intercepts of 0."""
        return None

    def _start(self, pool: Pool, targets: TargetsOf) -> Round | None:
        """Return the end of the last fit, where it was of the same columns and tasks."""
        # Columns that grow begin anew: their ids are others. So does a fit of fewer features.
        columns = pool.columns
        identity = (columns.fingerprint, columns.shape, targets.n_tasks)
        last: Round | None = getattr(self, "history_", (None,))[-1]
        same = self.warm_start and getattr(self, "_columns_of_last_fit", None) == identity
        same = same and not columns.grows
        self._columns_of_last_fit = identity
        if not same or last is None or last.coef.shape[1] > (self.max_features or np.inf):
            return None
        # Without the weights that this alpha and shared_alpha leave out.
        coef = last.coef if self.alpha is not None else np.zeros_like(last.coef)
        shared = last.shared if self.shared_alpha is not None else np.zeros_like(last.shared)
        return replace(last, coef=coef, shared=shared)

    def alpha_max(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
    ) -> float:
        """Return λ_max, the least alpha that leaves all weights of the tasks at 0."""
        # It is the largest dual norm of a candidate's gradient at the best intercepts, among the
        # candidates that the search looks at: for fresh draws, one round's.
        if self._norm().least(1.0) == 0:
            raise InputError("penalty", self._norm(), "a norm that makes weights zero")
        tiny = _TINY * self._gradient_scale(y, sample_weight)
        settings: dict[str, Any] = {
            "alpha": tiny, "shared_alpha": None, "rounds": 1, "n_entering": 1, "tol": 0.0,
            "gap_tol": 0.0, "max_features": None, "checkpoint": None, "warm_start": False,
            # At this alpha no residual is small, and the intercepts alone need few iterations.
            "max_iter": min(int(self.max_iter), _INTERCEPTS),
        }  # fmt: skip
        search = self._search()
        if isinstance(search, PerCostSearch):
            # The best for its cost need not be the one that violates most.
            settings |= {"search": search.search, "search_options": None}
        other: Any = clone(self)
        for name, value in (settings | self._quickest).items():
            setattr(other, name, value)
        other.fit(X, y, sample_weight)
        return float(other.history_[1].score + tiny) if len(other.history_) > 1 else 0.0

    def _gradient_scale(self, y: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return about what an example's part of a gradient is, 1 at most."""
        largest = 1.0 if sample_weight is None else finite_numbers(sample_weight).max(initial=0)
        return min(1.0, float(largest)) if largest > 0 else 1.0


@dataclass(frozen=True)
class _ProblemMaker:
    """Makes the problem of some examples, wherever these are."""

    targets: Callable[..., Targets]
    loss: TaskLoss
    norm: RowPenalty
    alpha: float
    shared_alpha: float
    dtype: np.dtype

    def __call__(self, executor: Executor | None, *examples: np.ndarray) -> TaskProblem:
        targets = self.targets(*examples)
        loss = self.loss if targets.classes is None else Multinomial(targets.classes)
        return TaskProblem(
            targets.tasks, loss, self.norm, self.alpha, self.shared_alpha, self.dtype, executor,
            order=targets.order, examples=len(examples[0]),
        )  # fmt: skip


def finite_numbers(values: Any) -> np.ndarray:
    """Return the finite ones of some numbers; none where a fit does not take them."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
    return numbers[np.isfinite(numbers)]


def _polished(problem: TaskProblem, last: Round, *, centered: bool) -> Round:
    """Return the last round with weights at the optimum of their signs and zeros."""
    exact = polish(problem, task_weights(last))
    if centered:
        # A constant added to all intercepts changes nothing: its mean is zero.
        exact = replace(exact, b=exact.b - exact.b.mean())
    value, kkt = problem.examine(exact)
    return replace(
        last, coef=exact.W.T, shared=exact.shared, intercept=exact.b, value=value, gap=kkt
    )
