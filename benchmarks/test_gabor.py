"""A round of sampled search: fresh Gabor filters drawn, evaluated on patches and scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Paired
from visionshare import GaborBank
from visionshare.generators.draws import Draws
from visionshare.machine.resources import resolve_jobs
from visionshare.store import DrawnColumns

M, SIDE, DRAWS, CLASSES = 3000, 16, 500, 3


@pytest.fixture(scope="module")
def patches() -> np.ndarray:
    return np.random.default_rng(0).random((M, SIDE, SIDE), np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_round_of_draws(paired: Paired, patches: np.ndarray, threads: int) -> None:
    """Draw, evaluate, scale and score, against a product with as many multiply-accumulates."""
    threads = min(threads, resolve_jobs(-1))
    draws = Draws(GaborBank().fit(patches), n=DRAWS, rounds=50)
    columns = DrawnColumns(draws, patches, n_jobs=threads)
    columns.fit_scaling("unit_norm")
    rng = np.random.default_rng(1)
    residual = rng.normal(size=(M, CLASSES)).astype(np.float32)
    numbers = iter(range(1, 50))

    def ours() -> Any:
        # Another round each time: nothing is evaluated twice.
        return columns.correlate(residual, draws.of_round(next(numbers)))

    responses = DRAWS * (SIDE // 2) ** 2
    taps = draws.macs(draws.of_round(1)) // responses
    left, right = rng.random((M, taps), np.float32), rng.random((taps, responses), np.float32)
    out = np.empty((M, 2000), np.float32)

    def plain() -> None:
        with threadpool_limits(threads):
            for i in range(0, responses, 2000):
                np.dot(left, right[:, i : i + 2000], out=out)

    paired(ours, plain, rounds=5)
