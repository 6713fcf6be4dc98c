"""Seconds of a round of GreedyTL against the number of candidates."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from scripts.reproduce.results import table
from visionshare import GreedyTL
from visionshare.columns import ArrayColumns
from visionshare.learners.ridge_rounds import RidgeSettings, ridge_rounds
from visionshare.search import Pool, make_search

SIZES = (100, 1_000, 1_899, 10_000, 100_000)
EXAMPLES = (12, 110)
ROUNDS = 10
# Seconds of the paper's table 1, 1899 sources and dimensions of Imagenet: exact, and of 59.
PAPER = {2: (1.541, 0.043), 5: (3.083, 0.088), 10: (5.291, 0.149)}


def median_seconds(functions: list[Callable[[], Any]], runs: int) -> list[float]:
    """Return the median seconds of functions that take turns, after one call of each."""
    seconds: list[list[float]] = [[] for _ in functions]
    for run in range(runs + 1):
        for measured, function in zip(seconds, functions, strict=True):
            begun = time.perf_counter()
            function()
            if run:
                measured.append(time.perf_counter() - begun)
    return [float(np.median(measured)) for measured in seconds]


def _problem(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(m, n)).astype(np.float32)
    return X, np.arange(m) % 2


def _row(m: int, n: int, runs: int) -> list[Any]:
    X, y = _problem(m, n)
    columns = ArrayColumns(X)
    columns.fit_scaling("unit_variance")
    pool, Z, v = Pool(columns), columns.table(), X[:, 0].copy()
    omega, target = np.ones(m), 2.0 * y - 1

    def rounds(search: str) -> None:
        settings = RidgeSettings(ROUNDS, 1.0, 0.0, make_search(search))
        assert len(list(ridge_rounds(pool, target, omega, settings))) == ROUNDS

    def products() -> None:
        for _ in range(ROUNDS):
            Z @ v

    exact, plain, few = median_seconds(
        [lambda: rounds("exhaustive"), products, lambda: rounds("random")], runs
    )
    micro = [1e6 * seconds / ROUNDS for seconds in (plain, exact, few)]
    return [m, f"{n:,}", *(f"{value:.1f}" for value in micro), f"{exact / plain:.2f}"]


def _headline(positives: int, runs: int) -> list[Any]:
    m = positives + 10
    X, _ = _problem(m, 1_899)
    y = np.arange(m) < positives
    exact, few = GreedyTL(), GreedyTL(search="random")
    seconds = median_seconds([lambda: exact.fit(X, y), lambda: few.fit(X, y)], runs)
    counts = [len(model.support_) for model in (exact, few)]
    said = [f"{1000 * s:.1f} ms, {n} chosen" for s, n in zip(seconds, counts, strict=True)]
    return [f"{positives} + 10", *said, *(f"{1000 * s:g} ms" for s in PAPER[positives])]


def times(quick: bool) -> dict[str, Any]:
    """Return the page's figures about time."""
    runs = 3 if quick else 15
    rows = [_row(m, n, runs) for m in EXAMPLES for n in SIZES]
    header = ["examples", "candidates", "product Zᵀv, µs", "exact round, µs"]
    header += ["round over 59, µs", "exact round / product"]
    headline = [_headline(p, runs) for p in PAPER]
    return {
        "rounds": ROUNDS,
        "runs": runs,
        "seconds": table(header, rows),
        "headline": table(["examples", "exact", "59", "paper, exact", "paper, 59"], headline),
    }
