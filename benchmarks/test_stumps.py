"""Searching all thresholds of all inputs, against sorting the inputs and against plain NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.measuring import Paired
from visionshare.generators.stumps import StumpColumns
from visionshare.search import Pool, make_criterion, make_search
from visionshare.search.pool import Candidate, SearchState

M, P, K = 20_000, 1_000, 10


@pytest.fixture(scope="module")
def inputs() -> np.ndarray:
    return np.random.default_rng(0).random((P, M), np.float32)


@pytest.fixture(scope="module")
def residual() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(M, K)).astype(np.float32)


def _searched(inputs: np.ndarray, residual: np.ndarray) -> Callable[[], list[Candidate]]:
    """Return a function that searches all thresholds of these inputs, on one thread."""
    columns = StumpColumns.from_images(inputs.T)
    columns.fit_scaling("unit_variance")
    pool, state = Pool(columns), SearchState(residual, 1, np.empty(0, np.int64))
    search, criterion = make_search("stumps"), make_criterion("gradient")
    excluded = pool.flat()
    return lambda: search.best(pool, state, criterion, excluded)


@pytest.mark.parametrize("sort", ["argsort", "stable argsort", "sort"])
def test_against_sorting_the_inputs(
    paired: Paired, inputs: np.ndarray, residual: np.ndarray, sort: str
) -> None:
    """Twenty million thresholds in ten classes, against sorting each input once."""
    orders: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "argsort": lambda column: np.argsort(column),
        "stable argsort": lambda column: np.argsort(column, kind="stable"),
        "sort": lambda column: np.sort(column),
    }
    order = orders[sort]

    def plain() -> None:
        for column in inputs:
            order(column)

    paired(_searched(inputs, residual), plain, rounds=3)


def test_against_numpy(paired: Paired, inputs: np.ndarray, residual: np.ndarray) -> None:
    """The same walk as array operations: the residual in sorted order, its cumulative sum."""
    inputs = inputs[:50]
    orders = np.argsort(inputs, axis=1, kind="stable")
    below = (np.arange(1, M) / M)[:, None]
    scale = 1 / np.sqrt(below * (1 - below))
    total = residual.sum(axis=0, dtype=np.float64)

    def plain() -> float:
        best = []
        for order in orders:
            sums = np.cumsum(residual[order], axis=0, dtype=np.float64)[:-1]
            best.append(np.abs((sums - below * total) * scale).sum(axis=1).max())
        return max(best)

    ours = _searched(inputs, residual)
    assert abs(ours()[0].score - plain()) < 1e-6 * plain()
    paired(ours, plain)
