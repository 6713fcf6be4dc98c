"""Searching all thresholds of all inputs, against sorting the inputs and against plain NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest

from visionshare.generators.stumps import StumpColumns
from visionshare.search import Pool, make_criterion, make_search

M, P, K = 20_000, 1_000, 10


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(0).random((P, M), np.float32)


@pytest.fixture(scope="module")
def residual():
    return np.random.default_rng(1).normal(size=(M, K)).astype(np.float32)


def _searched(inputs, residual):
    """Return a function that searches all thresholds of these inputs, on one thread."""
    columns = StumpColumns.from_images(inputs.T)
    columns.fit_scaling("unit_variance")
    pool, state = Pool(columns), SimpleNamespace(residual=residual, round=1)
    search, criterion = make_search("stumps"), make_criterion("gradient")
    excluded = pool.flat()
    return lambda: search.best(pool, state, criterion, excluded)


@pytest.mark.parametrize("sort", ["argsort", "stable argsort", "sort"])
def test_against_sorting_the_inputs(paired, inputs, residual, sort):
    """Twenty million thresholds in ten classes, against sorting each input once."""
    order = {
        "argsort": np.argsort,
        "stable argsort": lambda column: np.argsort(column, kind="stable"),
        "sort": np.sort,
    }[sort]

    def plain():
        for column in inputs:
            order(column)

    paired(_searched(inputs, residual), plain, 1.5, rounds=3)


def test_against_numpy(paired, inputs, residual):
    """The same walk as array operations: the residual in sorted order, its cumulative sum."""
    inputs = inputs[:50]
    orders = np.argsort(inputs, axis=1, kind="stable")
    share = (np.arange(1, M) / M)[:, None]
    scale = 1 / np.sqrt(share * (1 - share))
    total = residual.sum(axis=0, dtype=np.float64)

    def plain():
        best = []
        for order in orders:
            sums = np.cumsum(residual[order], axis=0, dtype=np.float64)[:-1]
            best.append(np.abs((sums - share * total) * scale).sum(axis=1).max())
        return max(best)

    ours = _searched(inputs, residual)
    assert abs(ours()[0].score - plain()) < 1e-6 * plain()
    paired(ours, plain, 0.5)
