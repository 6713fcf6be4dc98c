"""Backward steps: the least useful of the chosen features leave, one candidate at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from visionshare.learners.greedy import GreedySettings, measured, refit
from visionshare.learners.rounds import Round
from visionshare.losses import Loss
from visionshare.penalties import Penalty
from visionshare.search import Pool
from visionshare.solvers import ActiveSet

# Examples that estimate the curvature: the order of removal costs needs no more digits.
_SAMPLE = 32768


def removals(
    active: ActiveSet,
    loss: Loss,
    penalty: Penalty,
    W: np.ndarray,
    positions: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return what removing each candidate would cost, and where the weights would then go."""
    # In the quadratic model of the objective at its minimum, with a class a block of the Hessian
    # H_q, weights w_J that are forced to zero raise the objective by ½ Σ_q w_qJᵀ ([H_q⁻¹]_JJ)⁻¹
    # w_qJ, and the others move by −[H_q⁻¹]_·J ([H_q⁻¹]_JJ)⁻¹ w_qJ.
    k, p = W.shape
    stride = max(1, active.m // _SAMPLE)
    blocks = active.curvature_grams(loss, active.scores(W), stride)
    entries = np.arange(p)
    diagonal = np.zeros((k, p))
    diagonal[:, 1:] = penalty.curvature(W[:, 1:])
    blocks[:, entries, entries] += diagonal
    blocks[:, entries, entries] += 1e-6 * np.mean(blocks[:, entries, entries]) + 1e-12
    inverse = np.linalg.inv(blocks)
    costs = np.zeros(len(positions))
    for c, J in enumerate(positions):
        pull = np.linalg.solve(inverse[:, J[:, None], J], W[:, J, None])
        costs[c] = 0.5 * float(np.sum(W[:, J] * pull[:, :, 0]))
    J = positions[int(np.argmin(costs))]
    pull = np.linalg.solve(inverse[:, J[:, None], J], W[:, J, None])
    moved = W - np.matmul(inverse[:, :, J], pull)[:, :, 0]
    moved[:, J] = 0
    return costs, moved


def backward_steps(
    pool: Pool,
    active: ActiveSet,
    settings: GreedySettings,
    history: Sequence[Round],
    validation: np.ndarray | None = None,
) -> Iterator[Round]:
    """Remove candidates one at a time, always the one whose removal costs least, down to one."""
    left = list(history[-1].candidates)
    W = history[-1].W
    while True:
        begun = time.perf_counter()
        positions = _weight_positions(pool, left)
        costs, moved = removals(active, settings.loss, settings.penalty, W, positions)
        worst = int(np.argmin(costs))
        yield Round(
            number=len(left),
            entered=np.empty(0, np.int64),
            candidates=np.array(left, np.int64),
            coef=W[:, 1:],
            intercept=W[:, 0],
            score=float(costs[worst]),
            **measured(active, settings, W, validation)._asdict(),
            seconds=time.perf_counter() - begun,
        )
        if len(left) == 1:
            return
        del left[worst]
        kept = np.delete(np.arange(W.shape[1]), positions[worst])
        active.keep(kept[1:] - 1)
        W = refit(active, settings, moved[:, kept])


def _weight_positions(pool: Pool, candidates: Iterable[int | np.integer]) -> list[np.ndarray]:
    """Return which columns of W each candidate has; 0 is the intercept's."""
    ends = np.cumsum([len(pool.features(candidate)) for candidate in candidates])
    return [position + 1 for position in np.split(np.arange(ends[-1]), ends[:-1])]


def nested_path(pool: Pool, history: Sequence[Round], remainders: Sequence[Round]) -> list[Round]:
    """Return what backward steps left as a path of rounds that each add a candidate."""
    # The sets that were left are nested: round t has the t candidates that were left when t were
    # left, with their own weights. The seconds of the whole history stand in round 1.
    path: list[Round] = []
    order: list[int] = []
    for remainder in reversed(remainders):
        (entered,) = set(remainder.candidates.tolist()) - set(order)
        order.append(entered)
        positions = _weight_positions(pool, remainder.candidates)
        position_of = dict(zip(remainder.candidates.tolist(), positions, strict=True))
        columns = np.concatenate([position_of[candidate] for candidate in order]) - 1
        before = sum(record.seconds for record in history) if len(order) == 1 else 0.0
        path.append(
            replace(
                remainder,
                number=len(order),
                entered=np.array([entered], np.int64),
                candidates=np.array(order, np.int64),
                coef=remainder.coef[:, columns],
                seconds=remainder.seconds + before,
            )
        )
    return path
