"""The one loop: residual, search, refit; again until a budget or a tolerance is reached."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from visionshare.learners.path import support_of
from visionshare.learners.rounds import Round
from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.search import Criterion, Pool, RefitState, Search
from visionshare.solvers import ActiveSet, minimize

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GreedySettings:
    """The choices that make a learner out of the loop."""

    rounds: int
    loss: Loss
    penalty: Penalty
    criterion: Criterion
    search: Search
    tol: float = 0.0
    refit_tol: float = 1e-6
    max_iter: int = 200
    patience: int | None = None
    n_backward: int = 0


class Figures(NamedTuple):
    """What weights are worth: objective, loss, training error and validation error."""

    value: float
    loss: float
    train_error: float
    validation_error: float


def refit(active: ActiveSet, settings: GreedySettings, W: np.ndarray) -> np.ndarray:
    """Return the weights that solve the restricted master problem, from a start W (k, n + 1)."""
    solution = minimize(
        active, settings.loss, settings.penalty, W, settings.refit_tol, settings.max_iter
    )
    if not solution.converged:
        _logger.info("refit of %d columns stopped at a gap of %.2g", active.n, solution.gap)
    # A constant added to all intercepts changes nothing: keep the one with mean zero.
    solution.W[:, 0] -= solution.W[:, 0].mean()
    return solution.W


def measured(
    active: ActiveSet, settings: GreedySettings, W: np.ndarray, validation: np.ndarray | None
) -> Figures:
    """Return the figures of weights W (k, n + 1); ``validation`` is a mask of examples."""
    Z = active.scores(W)
    wrong, total, wrong_left_out, left_out, loss_value = active.total(
        _errors, Z, settings.loss, validation
    )
    value = loss_value + settings.penalty.value(W[:, 1:])
    validation_error = wrong_left_out / left_out if left_out else float("nan")
    return Figures(value, loss_value, float(wrong / total), float(validation_error))


def _errors(
    active: ActiveSet, Z: np.ndarray, loss: Loss, validation: np.ndarray | None
) -> tuple[float, float, int, int, float]:
    """Return the weights of the errors and of all, both counted for validation, and the loss."""
    wrong = (np.argmax(Z, axis=1) != active.y).reshape(-1)[: active.m]
    omega = active.weights
    mask = np.zeros(active.m, bool) if validation is None else validation
    value = active.value(loss, Z)
    return np.dot(wrong, omega), omega.sum(), int(wrong[mask].sum()), int(mask.sum()), value


def best_round(history: Sequence[Round]) -> int:
    """Return the number of the first round with the lowest validation error."""
    errors = [r.validation_error for r in history]
    return history[int(np.argmin(errors))].number


def _stalled(history: Sequence[Round], settings: GreedySettings, start_value: float) -> bool:
    if not history:
        return False
    before = history[-2].value if len(history) > 1 else start_value
    if settings.tol > 0 and before - history[-1].value < settings.tol * abs(before):
        return True
    late = settings.patience is not None and not np.isnan(history[-1].validation_error)
    return late and history[-1].number - best_round(history) >= (settings.patience or 0)


def greedy_rounds(
    pool: Pool,
    active: ActiveSet,
    settings: GreedySettings,
    validation: np.ndarray | None = None,
    history: Sequence[Round] = (),
) -> Iterator[Round]:
    """Yield the rounds that follow ``history``."""
    # A round depends on the weights before it and on the data alone, so a run that was stopped
    # and resumed yields the same bits as one that was not.
    loss = settings.loss
    penalty = settings.penalty
    history = list(history)
    columns = pool.columns
    excluded = pool.flat()
    W_start = refit(active, settings, np.zeros((active.k, 1)))
    # Of the intercepts alone: what the first round must lower, also where it came before.
    start_value = active.residual(loss, active.scores(W_start))[0] + penalty.value(W_start[:, 1:])
    if history and len(history[-1].moved):
        columns.put(history[-1].candidates, history[-1].moved)
    for candidate in history[-1].candidates if history else ():
        active.append(columns.columns_of(pool.features(candidate)))
        columns.enter(pool.features(candidate))
        excluded[candidate] = True

    def residual_at(number: int) -> np.ndarray:
        earlier = history[number - 2].W if number > 1 else W_start
        return active.residual(loss, active.scores(earlier))[1]

    W = history[-1].W if history else W_start
    while True:
        begun = time.perf_counter()
        Z = active.scores(W)
        loss_value, residual = active.residual(loss, Z)
        value = loss_value + penalty.value(W[:, 1:])
        if len(history) >= settings.rounds + settings.n_backward or _stalled(
            history, settings, start_value
        ):
            return
        number = len(history) + 1
        candidates = history[-1].candidates if history else np.empty(0, np.int64)
        support = support_of(pool, candidates)
        state = RefitState(
            residual, number, support, value, loss_value, active, W, Z, loss, penalty,
            earlier=residual_at,
        )  # fmt: skip
        winners = settings.search.best(pool, state, settings.criterion, excluded)
        if not winners or not winners[0].score > 0:
            _logger.info("no candidate lowers the loss after %d rounds", len(history))
            return
        best = winners[0]
        excluded[best.number] = True
        active.append(columns.columns_of(best.features))
        columns.enter(best.features)
        W = refit(active, settings, np.pad(W, ((0, 0), (0, len(best.features)))))
        record = Round(
            number=number,
            entered=np.array([best.number], np.int64),
            candidates=np.append(candidates, best.number),
            coef=W[:, 1:],
            intercept=W[:, 0],
            score=best.score,
            **measured(active, settings, W, validation)._asdict(),
            moved=columns.moved(np.append(candidates, best.number)),
            seconds=time.perf_counter() - begun,
        )
        history.append(record)
        yield record
