"""Scoring all candidates, in memory and in a store, against the plain product XᵀR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Paired
from visionshare import PatchTemplates, Pixels
from visionshare.columns import ArrayColumns
from visionshare.machine.resources import resolve_jobs
from visionshare.search import Pool, make_criterion
from visionshare.search.basis import Basis
from visionshare.search.per_cost import PerCost
from visionshare.search.pool import SearchState
from visionshare.store import create_store, open_store

M, D, K = 60_000, 2_000, 10


@pytest.fixture(scope="module")
def matrix() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    columns = rng.random((D, M), np.float32)
    return columns, rng.normal(size=(M, K)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("threads", [1, 2])
def test_scores_of_all_candidates(
    paired: Paired, matrix: tuple[np.ndarray, np.ndarray], dtype: str, threads: int
) -> None:
    """Scaled gradient norms of every column against XᵀR of the raw columns."""
    columns, R = matrix
    threads = min(threads, resolve_jobs(-1))
    scaled = ArrayColumns(columns=columns, dtype=dtype, n_jobs=threads)
    scaled.fit_scaling("unit_variance")
    pool = Pool(scaled)

    def plain() -> Any:
        with threadpool_limits(threads):
            return columns @ R

    paired(lambda: pool.gradient_norms(R), plain)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_opening_and_scanning_a_store(paired: Paired, dtype: str, tmp_path: Path) -> None:
    """A store that fits in memory, opened and scanned, against the array in memory."""
    images = np.random.default_rng(0).integers(0, 256, (60_000, 20, 20), np.uint8)
    family = Pixels().fit(images[:10])
    R = np.random.default_rng(1).normal(size=(len(images), K)).astype(np.float32)
    create_store(tmp_path / "s", family, images, dtype).fill()
    memory = ArrayColumns.from_family(family, images, dtype)
    paired(lambda: open_store(tmp_path / "s").correlate(R), lambda: memory.correlate(R))


def test_scores_by_cost(paired: Paired) -> None:
    """Scores of 16 000 patch features divided by what each adds to 75, against the scores."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 28, 28), np.uint8)
    family = PatchTemplates(n_patches=20_000).fit(images)
    columns = ArrayColumns(columns=rng.random((16_000, 6_000), np.float32), family=family)
    pool, gradient = Pool(columns), make_criterion("gradient")
    R = rng.normal(size=(6_000, K)).astype(np.float32)
    state = SearchState(R, 76, rng.permutation(16_000)[:75])
    by_cost = PerCost(gradient)
    paired(lambda: by_cost.score(pool, state, None), lambda: gradient.score(pool, state, None))


@pytest.mark.parametrize("n", [75, 300])
def test_orthogonal_vectors_of_chosen_columns(paired: Paired, n: int) -> None:
    """The vectors of n columns by a factor that grows, against least squares for each column."""
    X = np.random.default_rng(0).normal(size=(2 * n, n))
    gram = X.T @ X

    def grown() -> None:
        basis = Basis()
        for j in range(n):
            basis.append(gram[: j + 1, j])
            basis.coefficients(j)

    def solved() -> None:
        for j in range(1, n):
            np.linalg.lstsq(gram[:j, :j], gram[:j, j], rcond=1e-10)

    paired(grown, solved, rounds=3)
