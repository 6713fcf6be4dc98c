"""The path of column generation, as what a compact classifier carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.classifier.path import PathStep
from visionshare.columns import Columns
from visionshare.learners.column_generation import Generation
from visionshare.learners.scores import path_step
from visionshare.search import Pool
from visionshare.solvers import TaskWeights

__all__ = ["generation_path", "unscaled_tasks"]


def unscaled_tasks(
    weights: TaskWeights, columns: Columns, support: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (T, n) and intercepts (T,) of columns as they are."""
    offset, scale = columns.scaling_of(support)
    coef = weights.whole.T * scale
    return coef, weights.b - coef @ offset


def generation_path(
    history: Sequence[Generation], pool: Pool, y: np.ndarray, omega: np.ndarray
) -> tuple[PathStep, ...]:
    """Return the rounds whose candidates are the first of those that are left at the end.

    A round with a candidate that left later is no part of the final classifier's path. Of rounds
    with the same candidates the last counts.
    """
    final = history[-1].candidates
    nested: dict[int, Generation] = {}
    for done in history:
        n = len(done.candidates)
        if n and np.array_equal(done.candidates, final[:n]):
            nested[n] = done
    support = np.concatenate([np.empty(0, np.int64), *(pool.features(c) for c in final)])
    held = pool.columns.columns_of(support.astype(np.int64), scaled=False)
    steps: list[PathStep] = []
    for n in sorted(nested):
        width = sum(len(pool.features(c)) for c in final[:n])
        before = steps[-1].n_features if steps else 0
        steps.append(
            _step(nested[n], history, pool, support[:width], held[:width], before, y, omega)
        )
    return tuple(steps)


def _step(
    done: Generation,
    history: Sequence[Generation],
    pool: Pool,
    support: np.ndarray,
    held: np.ndarray,
    before: int,
    y: np.ndarray,
    omega: np.ndarray,
) -> PathStep:
    coef, intercept = unscaled_tasks(done.weights, pool.columns, support)
    return path_step(
        held,
        coef,
        intercept,
        y,
        omega,
        round=done.number,
        feature=tuple(int(j) for j in support[before:]),
        loss=done.value / float(omega.sum()),
        seconds=sum(r.seconds for r in history[: done.number + 1]),
        macs=pool.columns.macs(support) or 0,
        score=done.score,
    )
