"""Column generation: solve the restricted problem, add the worst violator, drop the zeros."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from visionshare.losses import ImportanceLoss
from visionshare.search import (
    BoundState,
    Candidate,
    Criterion,
    Pool,
    Search,
    Violation,
    make_task_criterion,
)
from visionshare.solvers import Solver, StepSolver, TaskProblem, TaskSolution, TaskWeights

__all__ = ["Generation", "GenerationSettings", "generate"]

_logger = logging.getLogger(__name__)
_FINEST = 1e-3


@dataclass(frozen=True)
class GenerationSettings:
    """The choices of a run of column generation.

    Attributes
    ----------
    rounds : int
        Rounds at most.
    max_features : int or None
        Stop when so many columns have weights.
    n_entering : int
        Candidates a round at most.
    search : Search
    tol : float
        ε over λ: a candidate enters only if it violates optimality by more.
    patience : int
        Stop after so many searches in a row without a violator.
    refit_tol, max_iter
        KKT residual and iterations of the restricted problem.
    criterion : str, default "violation"
        See :func:`visionshare.search.make_task_criterion`.
    solver : str, default "newton"
        Whose bound that criterion takes.
    corrective : bool, default True
        Solve the restricted problem in every round; otherwise a round is one update of one
        candidate, a new or an active one.
    """

    rounds: int
    max_features: int | None
    n_entering: int
    search: Search
    tol: float
    patience: int
    refit_tol: float
    max_iter: int
    criterion: str = "violation"
    solver: str = "newton"
    corrective: bool = True


@dataclass(frozen=True)
class Generation:
    """What one round did.

    Attributes
    ----------
    number : int
        Of the round, from 0: the intercepts alone.
    search : int
        Searches made so far.
    entered : ndarray of int
        The candidates that entered, none in the first round.
    candidates : ndarray of int
        The active candidates after the round, in order of entry.
    score : float
        The violation of the first that entered.
    W, shared, b : ndarray of shape (d, T), (d,) and (T,), float64
        Weights after the round, for scaled columns.
    value : float
        Loss plus penalties.
    kkt : float
        KKT residual of the restricted problem.
    seconds : float
    """

    number: int
    search: int
    entered: np.ndarray
    candidates: np.ndarray
    score: float
    W: np.ndarray
    shared: np.ndarray
    b: np.ndarray
    value: float
    kkt: float
    seconds: float

    @property
    def weights(self) -> TaskWeights:
        """W, w̃ and b together."""
        return TaskWeights(self.W, self.shared, self.b)


def generate(
    pool: Pool,
    problem: TaskProblem,
    solver: Solver,
    order: np.ndarray,
    settings: GenerationSettings,
    history: Sequence[Generation] = (),
    start: Generation | None = None,
) -> Iterator[Generation]:
    """Yield the rounds that follow ``history``.

    A round depends on the weights before it and on the data alone.

    Parameters
    ----------
    pool : Pool
    problem : TaskProblem
        Empty; the loop fills it, first from ``history``.
    solver : Solver
        Of that problem.
    order : ndarray of int
        The examples of the problem's rows among those of the columns.
    settings : GenerationSettings
    history : sequence of Generation, optional
        Rounds already done.
    start : Generation, optional
        Candidates and weights to begin with, such as those of another alpha.

    Yields
    ------
    Generation

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, algorithm 1.
    """
    active: list[int] = []
    if history:
        last = history[-1]
        active = [int(c) for c in last.candidates]
        for candidate in np.concatenate([done.entered for done in history]):
            pool.columns.enter(pool.features(candidate))
        _append(problem, pool, active, order)
        weights, number, searches = last.weights, last.number, last.search
        kkt = last.kkt
    else:
        begun, weights, number, searches = time.perf_counter(), problem.empty(), 0, 0
        if start is not None:
            active, weights = [int(c) for c in start.candidates], start.weights
        for candidate in active:
            pool.columns.enter(pool.features(candidate))
        _append(problem, pool, active, order)
        solved = solver.solve(weights, settings.refit_tol, settings.max_iter)
        weights, kkt = _pruned(problem, solved.weights, active), solved.kkt
        yield _generation(0, 0, [], active, 0.0, weights, solved, begun)
    quiet, useless, refit_tol = 0, pool.flat(), settings.refit_tol
    criterion = make_task_criterion(settings.criterion, problem, settings.solver, settings.tol)
    while number < settings.rounds and problem.n < (settings.max_features or np.inf):
        begun = time.perf_counter()
        searches += 1
        # One update at a time: active candidates have a turn too, until they are optimal.
        again = not settings.corrective and kkt > settings.refit_tol
        state = _state(pool, problem, weights, order, active, searches)
        found = _found(pool, problem, state, criterion, useless, active, again, settings)
        if not found:
            quiet += 1
            _logger.info("search %d found no candidate that violates optimality", searches)
            if quiet >= settings.patience:
                return
            continue
        quiet, number = 0, number + 1
        fresh = [candidate for candidate in found if candidate.number not in active]
        for candidate in fresh:
            active.append(candidate.number)
            pool.columns.enter(candidate.features)
        entered = [candidate.number for candidate in fresh]
        _append(problem, pool, entered, order)
        padded = weights.padded(sum(len(candidate.features) for candidate in fresh))
        if settings.corrective:
            solved = solver.solve(padded, refit_tol, settings.max_iter)
            if not solved.converged:
                _logger.info("round %d: the solver stopped at KKT %.2g", number, solved.kkt)
        else:
            place = active.index(found[0].number)
            solved = cast(StepSolver, solver).step(padded, place)
        weights, kkt = _pruned(problem, solved.weights, active), solved.kkt
        yield _generation(number, searches, entered, active, found[0].score, weights, solved, begun)
        if entered and settings.corrective and not set(entered) & set(active):
            # All left at once: the solver's tolerance hides what still violates. Without a finer
            # one they would enter for ever.
            if refit_tol <= _FINEST * settings.refit_tol:
                return
            refit_tol /= 10


def _append(problem: TaskProblem, pool: Pool, candidates: Sequence[int], order: np.ndarray) -> None:
    """Add the candidates' columns to the problem, each candidate a group."""
    if not candidates:
        return
    features = [pool.features(c) for c in candidates]
    ids = np.concatenate(features)
    held = pool.columns.columns_of(ids)
    problem.append(held[:, order], [len(part) for part in features], ids)


def _state(
    pool: Pool,
    problem: TaskProblem,
    weights: TaskWeights,
    order: np.ndarray,
    active: Sequence[int],
    search: int,
) -> BoundState:
    """Return what searches and criteria may ask for, in the order of the columns' examples."""
    m = pool.columns.shape[0]
    residual = np.zeros((m, problem.n_tasks), problem.dtype)
    weighs = isinstance(problem.loss, ImportanceLoss)
    importance = np.zeros((m if weighs else 0, problem.n_tasks))
    omegas = np.zeros((len(problem.blocks), m))
    for i, block in enumerate(problem.blocks):
        z, rows = problem.slack(block, weights), order[block.rows]
        residual[np.ix_(rows, block.tasks)] = problem.residual(block, z)
        omegas[i, rows] = block.omega
        if weighs:
            importance[np.ix_(rows, block.tasks)] = problem.importance(block, z)
    support = np.concatenate([np.empty(0, np.int64), *(pool.features(c) for c in active)])
    held = np.split(weights.W, problem.starts[1:]) if active else []
    return BoundState(
        residual,
        search,
        support.astype(np.int64),
        importance,
        omegas,
        dict(zip(map(int, active), held, strict=True)),
    )


def _found(
    pool: Pool,
    problem: TaskProblem,
    state: BoundState,
    criterion: Criterion,
    useless: np.ndarray,
    active: Sequence[int],
    again: bool,
    settings: GenerationSettings,
) -> list[Candidate]:
    """Return the candidates whose weights are to change: violators, or ``again`` active ones."""
    excluded = useless.copy()
    if not again:
        excluded[list(active)] = True
    n = settings.n_entering if settings.corrective else 1
    found = settings.search.best(pool, state, criterion, excluded, n)
    found = [candidate for candidate in found if np.isfinite(candidate.score)]
    if not found:
        return []
    # A search may score otherwise, such as by cost: the violation itself decides.
    violation = Violation(problem.norm, problem.alpha, problem.shared_alpha)
    numbers = np.array([candidate.number for candidate in found])
    violations = violation.score(pool, state, numbers)
    least = min(s for s in (problem.alpha, problem.shared_alpha) if np.isfinite(s))
    held = set(active)
    return [
        replace(candidate, score=float(violated))
        for candidate, violated in zip(found, violations, strict=True)
        if violated > max(settings.tol * least, 0)
        or (candidate.number in held and candidate.score > 0)
    ]


def _pruned(problem: TaskProblem, weights: TaskWeights, active: list[int]) -> TaskWeights:
    """Drop groups whose weights are all zero, from the problem, ``active`` and the weights."""
    if not active:
        return weights
    alive = np.abs(weights.W).sum(axis=1) + np.abs(weights.shared) > 0
    kept = np.flatnonzero(np.add.reduceat(alive, problem.starts) > 0)
    if len(kept) == len(active):
        return weights
    active[:] = [active[g] for g in kept]
    return weights.kept(problem.keep(kept))


def _generation(
    number: int,
    search: int,
    entered: Sequence[int],
    active: Sequence[int],
    score: float,
    weights: TaskWeights,
    solved: TaskSolution,
    begun: float,
) -> Generation:
    seconds = time.perf_counter() - begun
    both = np.array(entered, np.int64), np.array(active, np.int64)
    held = (number, search, *both, score)
    return Generation(
        *held, weights.W, weights.shared, weights.b, solved.value, solved.kkt, seconds
    )
