"""Column generation: solve the restricted problem, add the worst violator, drop the zeros."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import cast

import numpy as np

from visionshare.learners.path import support_of
from visionshare.learners.rounds import Round, task_weights
from visionshare.losses import ImportanceLoss
from visionshare.search import (
    BoundState,
    Candidate,
    Criterion,
    Pool,
    Search,
    TaskCriterion,
    Violation,
    make_task_criterion,
)
from visionshare.solvers import (
    Solver,
    StepSolver,
    TaskProblem,
    TaskSolution,
    TaskWeights,
)

_logger = logging.getLogger(__name__)
# How often the solver's tolerance is made ten times finer, at most.
_FINER = 3
# Of the objective: by how much a round that only solves on must lower it for another one.
_LEAST_GAIN = 1e-8


@dataclass(frozen=True)
class GenerationSettings:
    """The choices of a run of column generation."""

    rounds: int
    max_features: int | None
    n_entering: int
    search: Search
    tol: float
    patience: int
    refit_tol: float
    max_iter: int
    criterion: str | TaskCriterion = "violation"
    solver: str | Callable[[TaskProblem], Solver] = "newton"
    corrective: bool = True
    # Iterations of rounds in a row that only solve on, at most.
    most_iterations: float = np.inf
    # No part of the description of older runs: 0 changes none.
    gap_tol: float = field(default=0.0, repr=False)


def generate(
    pool: Pool,
    problem: TaskProblem,
    solver: Solver,
    settings: GenerationSettings,
    history: Sequence[Round] = (),
    start: Round | None = None,
) -> Iterator[Round]:
    """Yield the rounds that follow ``history``."""
    # A round depends on the rounds before it, on the data and on the steps that the solver has
    # found to be short enough: a resumed run ends where another does, within the solver's
    # tolerance.
    begun = time.perf_counter()
    last = history[-1] if history else start
    entered_before = [record.entered for record in history]
    for candidates in entered_before if start is None else [start.candidates, *entered_before]:
        for candidate in candidates:
            pool.columns.enter(pool.features(candidate))
    if last is not None and len(last.moved):
        pool.columns.put(last.candidates, last.moved)
    active = [] if last is None else [int(c) for c in last.candidates]
    _append(problem, pool, active)
    weights = problem.empty() if last is None else task_weights(last)
    if history:
        number = history[-1].number
        searches = history[-1].searches
        kkt = history[-1].gap
    else:
        number = 0
        searches = 0
        solved = solver.solve(weights, settings.refit_tol, settings.max_iter)
        weights = _pruned(problem, solved.weights, active)
        kkt = solved.kkt
        moved = pool.columns.moved(np.array(active, np.int64))
        last = _round(0, 0, [], active, 0.0, weights, solved, begun, moved)
        yield last
    quiet = 0
    # The largest violation since the restricted problem last changed.
    worst = 0.0
    useless = pool.flat()
    assert last is not None
    gains = _gains(history)
    n_solves = _solves_at_end(history)
    value = last.value
    lost = sum(map(_left_at_once, history)) if settings.corrective else 0
    criterion = make_task_criterion(settings.criterion, problem, settings.solver, settings.tol)
    # Where all that entered left at once, the solver's tolerance hides what still violates: without
    # a finer one they would enter forever.
    most = settings.max_features or np.inf
    while lost <= _FINER and number < settings.rounds and problem.n < most:
        begun = time.perf_counter()
        searches += 1
        # One update at a time: active candidates have a turn too, until they are optimal.
        again = not settings.corrective and kkt > settings.refit_tol
        state = _state(pool, problem, weights, active, searches)
        chosen = _chosen(pool, problem, state, criterion, useless, active, again, settings)
        if settings.gap_tol and chosen:
            worst = max(worst, *(candidate.score for candidate in chosen))
            if problem.duality_gap(weights, worst) <= settings.gap_tol * value:
                chosen = []
        # What violates optimality is known only where the restricted problem is solved: without a
        # violator the solver goes on, as long as it gains.
        unsolved = settings.corrective and kkt > settings.refit_tol and gains
        unsolved = unsolved and n_solves * settings.max_iter < settings.most_iterations
        if not chosen and not unsolved:
            quiet += 1
            _logger.info("search %d found no candidate that violates optimality", searches)
            if quiet >= settings.patience:
                return
            continue
        quiet = 0
        worst = 0.0
        number = number + 1
        fresh = [candidate for candidate in chosen if candidate.number not in active]
        for candidate in fresh:
            active.append(candidate.number)
            pool.columns.enter(candidate.features)
        entered = [candidate.number for candidate in fresh]
        _append(problem, pool, entered)
        padded = weights.padded(sum(len(candidate.features) for candidate in fresh))
        if settings.corrective:
            solved = solver.solve(padded, settings.refit_tol / 10**lost, settings.max_iter)
            if not solved.converged:
                _logger.info("round %d: the solver stopped at KKT %.2g", number, solved.kkt)
        else:
            group = active.index(chosen[0].number)
            solved = cast(StepSolver, solver).step(padded, group)
        weights = _pruned(problem, solved.weights, active)
        kkt = solved.kkt
        gains = bool(chosen) or _lower(solved.value, value)
        n_solves = 0 if chosen else n_solves + 1
        value = solved.value
        score = chosen[0].score if chosen else 0.0
        moved = pool.columns.moved(np.array(active, np.int64))
        record = _round(number, searches, entered, active, score, weights, solved, begun, moved)
        yield record
        lost += settings.corrective and _left_at_once(record)


def ending(history: Sequence[Round], settings: GenerationSettings, n_features: int) -> str:
    """Return what ended the rounds."""
    if history[-1].number >= settings.rounds:
        return "rounds"
    if n_features >= (settings.max_features or np.inf):
        return "max_features"
    lost = sum(map(_left_at_once, history)) if settings.corrective else 0
    if lost > _FINER:
        return "refit_tol"
    if history[-1].gap > settings.refit_tol:
        return "max_iter"
    return "gap" if settings.gap_tol else "optimal"


def was_cut(history: Sequence[Round], settings: GenerationSettings) -> bool:
    """Return whether the solver would have gone on, had it not done so for long."""
    n_iterations = _solves_at_end(history) * settings.max_iter
    is_unsolved = settings.corrective and history[-1].gap > settings.refit_tol
    return is_unsolved and _gains(history) and n_iterations >= settings.most_iterations


def _gains(history: Sequence[Round]) -> bool:
    """Return whether the last round lowered the objective, or let something enter."""
    if len(history) < 2 or len(history[-1].entered):
        return True
    return _lower(history[-1].value, history[-2].value)


def _solves_at_end(history: Sequence[Round]) -> int:
    """Return how many of the last rounds only solved on."""
    solves = takewhile(lambda record: record.number and not len(record.entered), reversed(history))
    return sum(1 for _ in solves)


def _lower(value: float, before: float) -> bool:
    """Return whether the objective fell by enough."""
    return bool(value < before - _LEAST_GAIN * abs(before))


def _left_at_once(record: Round) -> bool:
    """Return whether candidates entered in a round and none of them stayed."""
    return len(record.entered) > 0 and not np.isin(record.entered, record.candidates).any()


def _append(problem: TaskProblem, pool: Pool, candidates: Sequence[int]) -> None:
    """Add the candidates' columns to the problem, each candidate a group."""
    if not candidates:
        return
    features = [pool.features(c) for c in candidates]
    ids = np.concatenate(features)
    problem.append(pool.columns.columns_of(ids), [len(part) for part in features], ids)


def _state(
    pool: Pool,
    problem: TaskProblem,
    weights: TaskWeights,
    active: Sequence[int],
    search: int,
) -> BoundState:
    """Return what searches and criteria may ask for, in the order of the columns' examples."""
    z = problem.slack(weights)
    weighs = isinstance(problem.loss, ImportanceLoss)
    groups = np.split(weights.W, problem.starts[1:]) if active else []
    return BoundState(
        problem.each(_residual, z),
        search,
        support_of(pool, active),
        problem.each(_importance, z) if weighs else np.zeros((0, problem.n_tasks)),
        problem.each(_omegas),
        dict(zip(map(int, active), groups, strict=True)),
    )


def _of_all_examples(problem: TaskProblem, values: np.ndarray) -> np.ndarray:
    """Return what the problem's rows have, and zeros for the columns' other examples."""
    m = problem.m if problem.examples is None else problem.examples
    spread = np.zeros((m, values.shape[1]), values.dtype)
    spread[slice(None) if problem.order is None else problem.order] = values
    return spread


def _residual(problem: TaskProblem, z: np.ndarray) -> np.ndarray:
    return _of_all_examples(problem, problem.residual(z).astype(problem.dtype))


def _importance(problem: TaskProblem, z: np.ndarray) -> np.ndarray:
    return _of_all_examples(problem, problem.importance(z))


def _omegas(problem: TaskProblem) -> np.ndarray:
    return np.ascontiguousarray(_of_all_examples(problem, problem.targets.weights).T)


def _chosen(
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
    best = settings.search.best(pool, state, criterion, excluded, n)
    best = [candidate for candidate in best if np.isfinite(candidate.score)]
    if not best:
        return []
    # A search may score otherwise, such as by cost: the violation itself decides.
    violation = Violation(problem.norm, problem.alpha, problem.shared_alpha)
    numbers = np.array([candidate.number for candidate in best])
    violations = violation.score(pool, state, numbers)
    least = problem.least_alpha
    movable = set(active)
    return [
        replace(candidate, score=float(violated))
        for candidate, violated in zip(best, violations, strict=True)
        if violated > max(settings.tol * least, 0)
        or (candidate.number in movable and candidate.score > 0)
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


def _round(
    number: int,
    searches: int,
    entered: Sequence[int],
    active: Sequence[int],
    score: float,
    weights: TaskWeights,
    solved: TaskSolution,
    begun: float,
    moved: np.ndarray,
) -> Round:
    return Round(
        number=number,
        searches=searches,
        entered=np.array(entered, np.int64),
        candidates=np.array(active, np.int64),
        coef=weights.W.T,
        shared=weights.shared,
        intercept=weights.b,
        score=score,
        value=solved.value,
        gap=solved.kkt,
        moved=moved,
        seconds=time.perf_counter() - begun,
    )
