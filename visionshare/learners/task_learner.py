"""What learners of tasks by column generation share: settings, the loop and its result."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from visionshare.columns import ArrayColumns, Columns
from visionshare.errors import InputError
from visionshare.fingerprints import array_fingerprint
from visionshare.learners.checkpoint import Checkpoint
from visionshare.learners.column_generation import Generation, GenerationSettings, generate
from visionshare.learners.preparation import chosen_columns, search_of
from visionshare.learners.task_targets import Targets
from visionshare.losses import Multinomial, TaskLoss, make_task_loss
from visionshare.penalties import GroupNorm, RowPenalty
from visionshare.resources import resolve_jobs, thread_limit
from visionshare.search import Pool
from visionshare.search.task_criteria import check_task_criterion
from visionshare.solvers import Solver, TaskProblem, check_solver, polish

__all__ = ["TaskLearner"]

_NOT_OF_THE_PATH = {"rounds", "max_features", "n_jobs", "progress", "checkpoint", "patience"}
_TINY = 1e-6
_INTERCEPTS = 100


class TaskLearner(BaseEstimator):
    """What the classifier and the regressor share: settings, the loop and its result."""

    _losses: tuple[str, ...]
    loss: str
    eps: float = 0.1
    q: float = 2.0
    alpha: float | None
    shared_alpha: float | None = None
    criterion: str = "violation"
    corrective: bool = True
    # Further settings with which a learner looks for its largest violation at least cost.
    _plainest: ClassVar[dict[str, Any]] = {}
    rounds: int
    max_features: int | None
    n_entering: int
    search: str
    search_options: dict[str, Any] | None
    patience: int = 1
    solver: str
    warm_start: bool
    scaling: str
    tol: float
    refit_tol: float
    max_iter: int
    checkpoint: str | os.PathLike[str] | None
    n_jobs: int
    random_state: int
    progress: bool

    def check_parameters(self) -> None:
        """Check all parameters without data.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        self._settings()

    def _settings(self) -> GenerationSettings:
        for name, least in (
            ("rounds", 1),
            ("max_iter", 1),
            ("patience", 1),
            ("max_features", 1),
            ("n_entering", 1),
        ):
            value = getattr(self, name)
            if name == "max_features" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InputError(name, value, f"a whole number of at least {least}")
        for name in ("tol", "refit_tol", "eps"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
                raise InputError(name, value, "a finite number of at least 0")
        alphas = {name: getattr(self, name) for name in ("alpha", "shared_alpha")}
        for name, value in alphas.items():
            if value is not None and (not isinstance(value, Real) or not 0 < float(value) < np.inf):
                raise InputError(name, value, "a finite number above 0, or None")
        if all(value is None for value in alphas.values()):
            raise InputError("alpha", None, "a number for alpha, shared_alpha or both")
        if self.loss not in self._losses:
            raise InputError("loss", self.loss, " or ".join(map(repr, self._losses)))
        if self.scaling not in ("unit_norm", "unit_variance", "max_abs", "none"):
            accepted = "'unit_norm' or 'unit_variance' or 'max_abs' or 'none'"
            raise InputError("scaling", self.scaling, accepted)
        check_solver(self.solver)
        if self.loss == "multinomial" and self.solver == "admm":
            raise InputError("solver", self.solver, "another one, for the multinomial loss")
        check_task_criterion(self.criterion)
        self._norm()
        return GenerationSettings(
            rounds=int(self.rounds),
            max_features=self.max_features,
            n_entering=int(self.n_entering),
            search=search_of(self),
            tol=float(self.tol),
            patience=int(self.patience),
            refit_tol=float(self.refit_tol),
            max_iter=int(self.max_iter),
            criterion=self.criterion,
            solver=self.solver,
            corrective=self.corrective,
        )

    def _keep(self, given: dict[str, Any]) -> None:
        """Keep a constructor's arguments, ``locals()``, as attributes of their names."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def _norm(self) -> RowPenalty:
        return GroupNorm(self.q)

    def _make_solver(self, problem: TaskProblem) -> Solver:
        return check_solver(self.solver)(problem)

    def _columns(self, X: np.ndarray | Columns, y: np.ndarray, numeric: bool) -> Any:
        if isinstance(X, Columns):
            y = np.asarray(y)
            if len(y) != X.shape[0]:
                raise InputError("y", y.shape, f"one target for each of {X.shape[0]} examples")
            self.n_features_in_ = X.shape[1]
            return X, y
        table, y = validate_data(
            self, X, y, dtype=(np.float64, np.float32), multi_output=numeric, y_numeric=numeric
        )
        return ArrayColumns(table, dtype=str(table.dtype)), y

    def _places(self, tasks: np.ndarray | None, m: int) -> np.ndarray | None:
        """Learn the names of the tasks; return each example's task."""
        self.tasks_ = None
        if tasks is None:
            return None
        tasks = np.asarray(tasks)
        if tasks.shape != (m,):
            raise InputError("tasks", tasks.shape, f"one task for each of {m} examples")
        self.tasks_, place = np.unique(tasks, return_inverse=True)
        return place

    def _task_loss(self) -> TaskLoss:
        # Two classes have one score: their multinomial loss is the logistic one.
        if self.loss == "insensitive":
            return make_task_loss(self.loss, eps=float(self.eps))
        return make_task_loss("logistic" if self.loss == "multinomial" else self.loss)

    def _problem(self, targets: Targets, dtype: np.dtype, executor: Any) -> TaskProblem:
        classes = targets.classes
        return TaskProblem(
            targets.blocks,
            targets.n_tasks,
            self._task_loss() if classes is None else Multinomial(classes),
            self._norm(),
            np.inf if self.alpha is None else float(self.alpha),
            np.inf if self.shared_alpha is None else float(self.shared_alpha),
            dtype,
            executor,
        )

    def _learn(self, columns: Columns, targets: Targets, omega: np.ndarray, y: np.ndarray) -> None:
        settings = self._settings()
        jobs = resolve_jobs(self.n_jobs)
        with thread_limit(self.n_jobs), ThreadPoolExecutor(jobs) as threads:
            columns.n_jobs = jobs
            columns.check_rounds(settings.rounds * settings.patience)
            columns.fit_scaling(self.scaling, omega)
            problem = self._problem(targets, columns.compute_dtype, threads)
            pool = Pool(columns)
            history = self._run(pool, problem, targets, settings, (omega, y))
            if self.corrective:
                exact = polish(problem, history[-1].weights)
                if targets.classes is not None:
                    # A constant added to all intercepts changes nothing: its mean is zero.
                    exact = replace(exact, b=exact.b - exact.b.mean())
                value, kkt = problem.examine(exact)
                history[-1] = replace(
                    history[-1], W=exact.W, shared=exact.shared, b=exact.b, value=value, kkt=kkt
                )
            self.history_ = tuple(history)
            last = history[-1]
            self.candidates_ = last.candidates
            parts = [pool.features(c) for c in last.candidates]
            self.support_ = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
            self.n_iter_ = last.number
            self._finish(columns, pool, problem, targets)

    def _run(
        self,
        pool: Pool,
        problem: TaskProblem,
        targets: Targets,
        settings: GenerationSettings,
        examples: tuple[np.ndarray, np.ndarray],
    ) -> list[Generation]:
        history: list[Generation] = []
        checkpoint = None
        if self.checkpoint is not None:
            identity = self._identity(pool.columns, targets, examples)
            checkpoint = Checkpoint(self.checkpoint, identity, Generation)
            history = checkpoint.load()[: settings.rounds + 1]
        solver = self._make_solver(problem)
        start = self._start(pool.columns, targets)
        rounds = generate(pool, problem, solver, targets.order, settings, history, start)
        if self.progress:
            from tqdm import tqdm

            rounds = tqdm(rounds, "rounds", settings.rounds + 1, initial=len(history))
        for done in rounds:
            history.append(done)
            if checkpoint is not None:
                checkpoint.save(done, len(history))
        return history

    def _start(self, columns: Columns, targets: Targets) -> Generation | None:
        """Return the end of the last fit, where it was of the same columns and tasks."""
        identity = (columns.fingerprint, columns.shape, targets.n_tasks)
        last = getattr(self, "history_", (None,))[-1]
        same = self.warm_start and getattr(self, "_identity_of_pool", None) == identity
        self._identity_of_pool = identity
        return last if same else None

    def alpha_max(
        self,
        X: np.ndarray | Columns,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        tasks: np.ndarray | None = None,
    ) -> float:
        """Return λ_max, the least alpha that leaves all weights of the tasks at 0.

        It is the largest dual norm of a candidate's gradient at the best intercepts, among the
        candidates that the search looks at: for fresh draws those of one round.

        Parameters
        ----------
        X, y, sample_weight, tasks
            As in ``fit``.
        """
        changed: dict[str, Any] = {
            "alpha": _TINY,
            "shared_alpha": None,
            "rounds": 1,
            "n_entering": 1,
        }
        changed |= {"tol": 0.0, "max_features": None, "checkpoint": None, "warm_start": False}
        # Without a alpha no residual is small, and the intercepts alone need few iterations.
        changed["max_iter"] = min(int(self.max_iter), _INTERCEPTS)
        alone = clone(self)
        for name, value in (changed | self._plainest).items():
            setattr(alone, name, value)
        alone.fit(X, y, sample_weight, tasks=tasks)
        return float(alone.history_[1].score + _TINY) if len(alone.history_) > 1 else 0.0

    def _identity(
        self, columns: Columns, targets: Targets, examples: tuple[np.ndarray, np.ndarray]
    ) -> str:
        settings = {
            name: value for name, value in self.get_params().items() if name not in _NOT_OF_THE_PATH
        }
        text = json.dumps([settings, columns.fingerprint], sort_keys=True, default=str)
        held = np.frombuffer(text.encode(), np.uint8)
        return array_fingerprint(held, targets.order, *examples)

    def _finish(self, columns: Columns, pool: Pool, problem: TaskProblem, targets: Targets) -> None:
        raise NotImplementedError

    def _scores(self, X: np.ndarray | Columns, tasks: np.ndarray | None) -> np.ndarray:
        """Return the scores (m, T), or (m, 1) of each example's own task."""
        scores = chosen_columns(self, X) @ self._coef.T + self._intercept
        if (tasks is None) != (self.tasks_ is None):
            accepted = "a task for each example, as in fit" if self.tasks_ is not None else "None"
            raise InputError("tasks", tasks if tasks is None else np.shape(tasks), accepted)
        if tasks is None:
            return scores
        tasks, names = np.asarray(tasks), np.asarray(self.tasks_)
        place = np.minimum(np.searchsorted(names, tasks), len(names) - 1)
        if tasks.shape != (len(scores),) or (names[place] != tasks).any():
            raise InputError("tasks", tasks.shape, f"tasks among {names[:10].tolist()}")
        return scores[np.arange(len(scores)), place][:, None]
