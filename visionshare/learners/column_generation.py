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


@dataclass(frozen=True)
class GenerationSettings:
    """The choices of a run of column generation.

    Attributes
    ----------
    rounds : int
        Candidates that enter at most.
    max_features : int or None
        Stop when so many columns have weights.
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
    entered : int
        The candidate that entered, −1 in the first round.
    candidates : ndarray of int
        The active candidates after the round, in order of entry.
    score : float
        The violation of the one that entered.
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
    entered: int
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
        for done in history[1:]:
            pool.columns.enter(pool.features(done.entered))
        for candidate in active:
            problem.append(_columns_of(pool, candidate, order))
        weights, number, searches = last.weights, last.number, last.search
    else:
        begun = time.perf_counter()
        solved = master.solve(problem.empty(), settings.refit_tol, settings.max_iter)
        weights, number, searches = solved.weights, 0, 0
        yield _generation(0, 0, -1, active, 0.0, weights, solved, begun)
    quiet, useless = 0, pool.flat()
    while number < settings.rounds and problem.n < (settings.max_features or np.inf):
        begun = time.perf_counter()
        searches += 1
        found = _violator(pool, problem, weights, order, active, searches, useless, settings)
        if found is None:
            quiet += 1
            _logger.info("search %d found no candidate that violates optimality", searches)
            if quiet >= settings.patience:
                return
            continue
        quiet, number = 0, number + 1
        active.append(found.number)
        problem.append(_columns_of(pool, found.number, order))
        pool.columns.enter(found.features)
        start = weights.padded(len(found.features))
        solved = master.solve(start, settings.refit_tol, settings.max_iter)
        if not solved.converged:
            _logger.info("round %d: the master stopped at KKT %.2g", number, solved.kkt)
        weights = _pruned(problem, solved.weights, active)
        entered = found.number
        yield _generation(number, searches, entered, active, found.score, weights, solved, begun)


def _columns_of(pool: Pool, candidate: int, order: np.ndarray) -> np.ndarray:
    return pool.columns.columns_of(pool.features(candidate))[:, order]


def _violator(
    pool: Pool,
    problem: TaskProblem,
    weights: TaskWeights,
    order: np.ndarray,
    active: Sequence[int],
    search: int,
    useless: np.ndarray,
    settings: GenerationSettings,
) -> Candidate | None:
    residual = np.zeros((pool.columns.shape[0], problem.n_tasks), problem.dtype)
    for block in problem.blocks:
        held = problem.residual(block, problem.slack(block, weights))
        residual[np.ix_(order[block.rows], block.tasks)] = held
    excluded = useless.copy()
    excluded[list(active)] = True
    criterion = Violation(problem.norm, problem.strength, problem.shared_strength)
    support = np.concatenate([np.empty(0, np.int64), *(pool.features(c) for c in active)])
    state = SearchState(residual, search, support.astype(np.int64))
    found = settings.search.best(pool, state, criterion, excluded)
    least = min(s for s in (problem.strength, problem.shared_strength) if np.isfinite(s))
    if found is None or not found.score > 0:
        return None
    # A search may score otherwise, such as by cost: the violation itself decides.
    violation = float(criterion.score(pool, state, np.array([found.number]))[0])
    return replace(found, score=violation) if violation > settings.tol * least else None


def _pruned(problem: TaskProblem, weights: TaskWeights, active: list[int]) -> TaskWeights:
    """Drop groups whose weights are all zero, from the problem, ``active`` and the weights."""
    alive = np.abs(weights.W).sum(axis=1) + np.abs(weights.shared) > 0
    kept = np.flatnonzero(np.add.reduceat(alive, problem.starts) > 0)
    if len(kept) == len(active):
        return weights
    active[:] = [active[g] for g in kept]
    return weights.kept(problem.keep(kept))


def _generation(
    number: int,
    search: int,
    entered: int,
    active: Sequence[int],
    score: float,
    weights: TaskWeights,
    solved: TaskSolution,
    begun: float,
) -> Generation:
    seconds = time.perf_counter() - begun
    held = (number, search, entered, np.array(active, np.int64), score)
    return Generation(
        *held, weights.W, weights.shared, weights.b, solved.value, solved.kkt, seconds
    )
