"""Column generation: solve the restricted problem, add the worst violator, drop the zeros."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from visionshare.search import Candidate, Pool, Search, SearchState, Violation
from visionshare.solvers import Master, TaskProblem, TaskSolution, TaskWeights

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
    entering : int
        Candidates a round at most.
    search : Search
    tol : float
        ε over λ: a candidate enters only if it violates optimality by more.
    patience : int
        Stop after so many searches in a row without a violator.
    refit_tol, max_iter
        KKT residual and iterations of the restricted problem.
    """

    rounds: int
    max_features: int | None
    entering: int
    search: Search
    tol: float
    patience: int
    refit_tol: float
    max_iter: int


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
    master: Master,
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
    master : Master
        Of that problem.
    order : ndarray of int
        The examples of the problem's rows among those of the columns.
    settings : GenerationSettings
    history : sequence of Generation, optional
        Rounds already done.
    start : Generation, optional
        Candidates and weights to begin with, such as those of another strength.

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
    else:
        begun, weights, number, searches = time.perf_counter(), problem.empty(), 0, 0
        if start is not None:
            active, weights = [int(c) for c in start.candidates], start.weights
        for candidate in active:
            pool.columns.enter(pool.features(candidate))
        _append(problem, pool, active, order)
        solved = master.solve(weights, settings.refit_tol, settings.max_iter)
        weights = _pruned(problem, solved.weights, active)
        yield _generation(0, 0, [], active, 0.0, weights, solved, begun)
    quiet, useless, refit_tol = 0, pool.flat(), settings.refit_tol
    while number < settings.rounds and problem.n < (settings.max_features or np.inf):
        begun = time.perf_counter()
        searches += 1
        found = _violators(pool, problem, weights, order, active, searches, useless, settings)
        if not found:
            quiet += 1
            _logger.info("search %d found no candidate that violates optimality", searches)
            if quiet >= settings.patience:
                return
            continue
        quiet, number = 0, number + 1
        for candidate in found:
            active.append(candidate.number)
            pool.columns.enter(candidate.features)
        _append(problem, pool, active[-len(found) :], order)
        padded = weights.padded(sum(len(candidate.features) for candidate in found))
        solved = master.solve(padded, refit_tol, settings.max_iter)
        if not solved.converged:
            _logger.info("round %d: the master stopped at KKT %.2g", number, solved.kkt)
        weights = _pruned(problem, solved.weights, active)
        entered = [candidate.number for candidate in found]
        yield _generation(number, searches, entered, active, found[0].score, weights, solved, begun)
        if not set(entered) & set(active):
            # All left at once: the master's tolerance hides what still violates. Without a finer
            # one they would enter for ever.
            if refit_tol <= _FINEST * settings.refit_tol:
                return
            refit_tol /= 10


def _append(problem: TaskProblem, pool: Pool, candidates: Sequence[int], order: np.ndarray) -> None:
    """Add the candidates' columns to the problem, each candidate a group."""
    if not candidates:
        return
    features = [pool.features(c) for c in candidates]
    held = pool.columns.columns_of(np.concatenate(features))
    problem.append(held[:, order], [len(ids) for ids in features])


def _violators(
    pool: Pool,
    problem: TaskProblem,
    weights: TaskWeights,
    order: np.ndarray,
    active: Sequence[int],
    search: int,
    useless: np.ndarray,
    settings: GenerationSettings,
) -> list[Candidate]:
    residual = np.zeros((pool.columns.shape[0], problem.n_tasks), problem.dtype)
    for block in problem.blocks:
        held = problem.residual(block, problem.slack(block, weights))
        residual[np.ix_(order[block.rows], block.tasks)] = held
    excluded = useless.copy()
    excluded[list(active)] = True
    criterion = Violation(problem.norm, problem.strength, problem.shared_strength)
    support = np.concatenate([np.empty(0, np.int64), *(pool.features(c) for c in active)])
    state = SearchState(residual, search, support.astype(np.int64))
    found = settings.search.best(pool, state, criterion, excluded, settings.entering)
    least = min(s for s in (problem.strength, problem.shared_strength) if np.isfinite(s))
    if not found:
        return []
    # A search may score otherwise, such as by cost: the violation itself decides.
    violations = criterion.score(pool, state, np.array([c.number for c in found]))
    return [
        replace(candidate, score=float(violation))
        for candidate, violation in zip(found, violations, strict=True)
        if violation > max(settings.tol * least, 0)
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
