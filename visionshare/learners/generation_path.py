"""The path of column generation, as what a compact classifier carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visionshare.classifier.path import PathStep
from visionshare.learners.column_generation import Generation
from visionshare.search import Pool
from visionshare.solvers import TaskWeights
from visionshare.store import Columns

__all__ = ["generation_path", "unscaled_tasks"]


def unscaled_tasks(
    weights: TaskWeights, columns: Columns, support: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (T, n) and intercepts (T,) of columns as they are."""
    offset, scale = columns.scaling_of(support)
    coef = weights.whole.T * scale
    return coef, weights.b - coef @ offset


def generation_path(
    history: Sequence[Generation], pool: Pool, y: np.ndarray, omega: np.ndarray, n_classes: int
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
    scores = held.T @ coef.T + intercept
    if scores.shape[1] == 1:
        wrong = (scores[:, 0] > 0) != (y == 1)
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    else:
        wrong = np.argmax(scores, axis=1) != y
    return PathStep(
        round=done.number,
        feature=tuple(int(j) for j in support[before:]),
        n_features=len(support),
        weights=coef.astype(np.float32),
        intercept=intercept.astype(np.float32),
        loss=done.value / float(omega.sum()),
        train_error=float(np.dot(wrong, omega) / omega.sum()),
        validation_error=None,
        test_error=None,
        seconds=sum(r.seconds for r in history[: done.number + 1]),
        macs=(pool.columns.macs(support) or 0) + coef.size,
        score=done.score,
    )
