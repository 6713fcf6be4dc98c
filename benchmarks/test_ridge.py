"""Rounds of GreedyTL: all candidates against plain products, and 59 of them against fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.measuring import Paired
from visionshare.columns import ArrayColumns
from visionshare.learners.ridge_rounds import RidgeSettings, ridge_rounds
from visionshare.machine.resources import thread_limit
from visionshare.search import Pool, make_search

# What GreedyTL chooses of 1899 candidates at λ = 1 and δ = 1e-4 from 12 examples.
ROUNDS = 40


def _rounds(m: int, n: int, search: str, width: int = 1) -> Any:
    """Return a function that makes forty rounds over n columns in groups, and the columns."""
    rng = np.random.default_rng(0)
    groups = None if width == 1 else np.arange(n) // width
    columns = ArrayColumns(rng.normal(size=(m, n)), dtype="float32", groups=groups)
    columns.fit_scaling("unit_variance")
    pool, y, omega = Pool(columns), np.sign(rng.normal(size=m)), np.ones(m)
    settings = RidgeSettings(ROUNDS, 1.0, 0.0, make_search(search))

    def ours() -> None:
        assert len(list(ridge_rounds(pool, y, omega, settings))) == ROUNDS

    return ours, columns.table()


@pytest.mark.parametrize("m", [12, 110])
@pytest.mark.parametrize("n", [1_899, 10_000, 100_000])
def test_a_round_over_all_candidates(paired: Paired, m: int, n: int) -> None:
    """Forty rounds against forty products Zᵀv."""
    ours, Z = _rounds(m, n, "exhaustive")
    v = np.random.default_rng(1).normal(size=m).astype(np.float32)

    def plain() -> None:
        for _ in range(ROUNDS):
            Z @ v

    # Setting a limit takes longer than ten rounds: one for both.
    with thread_limit(1):
        paired(ours, plain)


def test_a_round_over_59_of_them(paired: Paired) -> None:
    """Forty rounds over 59 of 100 000 candidates, against 59 of 1000."""
    with thread_limit(1):
        paired(_rounds(12, 100_000, "random")[0], _rounds(12, 1_000, "random")[0])


@pytest.mark.parametrize("m", [12, 110])
def test_a_round_over_pairs(paired: Paired, m: int) -> None:
    """Forty rounds over pairs of 10 000 columns against the products of eighty steps."""
    ours, Z = _rounds(m, 10_000, "exhaustive", width=2)
    v = np.random.default_rng(1).normal(size=m).astype(np.float32)

    def plain() -> None:
        for _ in range(2 * ROUNDS):
            Z @ v

    with thread_limit(1):
        paired(ours, plain)
