"""Seconds of a step of GreedyTL against the number of candidates, and of whole fits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import table
from visionshare import GreedyTL
from visionshare.columns import ArrayColumns
from visionshare.learners.ridge_kernels import select, select_drawn
from visionshare.learners.ridge_rounds import RidgeSettings, ridge_rounds
from visionshare.search import Pool, RandomSubset, make_search

SIZES = (100, 1_000, 1_899, 10_000, 100_000)
EXAMPLES = (12, 110)
PAPERS = 1_899
ROUNDS, DRAWN = 10, 59
# Seconds of the paper's table 1, 1899 sources and dimensions of Imagenet: exact, and of 59.
PAPER = {2: (1.541, 0.043), 5: (3.083, 0.088), 10: (5.291, 0.149)}


class Steps(NamedTuple):
    """Seconds of one of ten: a product, steps of the compiled loop, a round as a caller has it."""

    examples: int
    candidates: int
    product: float
    exact: float
    drawn: float
    whole: float


class Fits(NamedTuple):
    """Seconds of a fit and of its selection alone, and how many candidates entered.

    Exact: all are looked at; drawn: 59 of them a round.
    """

    positives: int
    exact: float
    drawn: float
    n_exact: int
    n_drawn: int
    selected: float
    selected_drawn: float


def median_seconds(functions: list[Callable[[], Any]], runs: int) -> list[float]:
    """Return the median seconds of the processor of functions that take turns, once called."""
    seconds: list[list[float]] = [[] for _ in functions]
    for run in range(runs + 1):
        for measured, function in zip(seconds, functions, strict=True):
            begun = time.process_time()
            function()
            if run:
                measured.append(time.process_time() - begun)
    return [float(np.median(measured)) for measured in seconds]


def _problem(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(m, n)).astype(np.float32)
    return X, np.arange(m) % 2


def _steps(m: int, n: int, runs: int) -> Steps:
    X, y = _problem(m, n)
    columns = ArrayColumns(X)
    columns.fit_scaling("unit_variance")
    pool, Z, v = Pool(columns), columns.table(), X[:, 0].copy()
    target = 2.0 * y - 1
    centered = target - target.mean()
    problem = (Z, *columns.scaling_of(), np.ones(m), centered, float(m), 1.0, 0.0)
    uniforms = np.random.default_rng(0).random((ROUNDS, DRAWN))

    def exact() -> None:
        assert len(select(*problem, ROUNDS)[0]) == ROUNDS

    def drawn() -> None:
        U, Gys = np.empty((ROUNDS, m)), np.empty((ROUNDS, m))
        found = np.zeros(ROUNDS, np.int64), np.empty(ROUNDS, np.int64), np.empty(ROUNDS), U, Gys
        assert select_drawn(*problem, uniforms, 0, *found)[0] == ROUNDS

    def products() -> None:
        for _ in range(ROUNDS):
            Z @ v

    def whole() -> None:
        settings = RidgeSettings(ROUNDS, 1.0, 0.0, make_search("exhaustive"))
        assert len(list(ridge_rounds(pool, target, np.ones(m), settings))) == ROUNDS

    seconds = median_seconds([products, exact, drawn, whole], runs)
    return Steps(m, n, *(value / ROUNDS for value in seconds))


def _fits(positives: int, runs: int) -> Fits:
    m = positives + 10
    X, _ = _problem(m, 1_899)
    y = np.arange(m) < positives
    exact, drawn = GreedyTL(), GreedyTL(search="random")
    columns = ArrayColumns(X)
    columns.fit_scaling("unit_variance")
    centered = 2.0 * y - 1 - np.mean(2.0 * y - 1)
    rounds, alpha, delta = int(exact.rounds), float(exact.alpha), float(exact.tol)
    problem = (columns.table(), *columns.scaling_of(), np.ones(m), centered, float(m), alpha, delta)
    uniforms = RandomSubset(DRAWN).uniforms(1)
    while len(uniforms) < rounds:
        uniforms = np.vstack([uniforms, RandomSubset(DRAWN).uniforms(len(uniforms) + 1)])
    uniforms = uniforms[:rounds]

    def all_of_them() -> int:
        return len(select(*problem, rounds)[0])

    def some_of_them() -> int:
        ids, gains = np.zeros(rounds, np.int64), np.empty(rounds)
        U, Gys = np.empty((rounds, m)), np.empty((rounds, m))
        gone = np.zeros(rounds, np.int64)
        found = select_drawn(*problem, uniforms, 0, gone, ids, gains, U, Gys)
        return int(found[0])

    n_exact, n_drawn = len(exact.fit(X, y).support_), len(drawn.fit(X, y).support_)
    assert (all_of_them(), some_of_them()) == (n_exact, n_drawn)
    timed = [lambda: exact.fit(X, y), lambda: drawn.fit(X, y), all_of_them, some_of_them]
    whole, whole_drawn, alone, alone_drawn = median_seconds(timed, runs)
    return Fits(positives, whole, whole_drawn, n_exact, n_drawn, alone, alone_drawn)


def times(quick: bool) -> dict[str, Any]:
    """Return the page's figures about time."""
    runs = 3 if quick else 51
    steps = [_steps(m, n, runs) for m in EXAMPLES for n in SIZES]
    return {
        "rounds": ROUNDS,
        "runs": runs,
        "steps": steps,
        "fits": [_fits(positives, runs) for positives in PAPER],
    }


def table_of_steps(found: Sequence[Steps]) -> str:
    """Return a row a problem of 1,899 candidates or more, in microseconds."""
    header = ["examples × candidates", "product Zᵀv, µs", "exact step, µs", "step over 59, µs"]
    rows = [
        [
            f"{one.examples} × {one.candidates:,}",
            *(f"{1e6 * s:.1f}" for s in (one.product, one.exact, one.drawn)),
            f"{one.exact / one.product:.2f}",
            f"{1e6 * one.whole:.1f}",
        ]
        for one in found
        if one.candidates >= PAPERS
    ]
    return table([*header, "exact step / product", "exact round, from Python, µs"], rows)


def table_of_fits(found: Sequence[Fits]) -> str:
    """Return a row a number of positives, beside the paper's milliseconds."""
    rows = [
        [
            f"{one.positives} + 10",
            f"{one.n_exact}, {one.n_drawn}",
            *(f"{1000 * s:.2f}" for s in (one.selected, one.selected_drawn)),
            *(f"{1000 * s:.1f}" for s in (one.exact, one.drawn)),
            *(f"{1000 * s:g}" for s in PAPER[one.positives]),
        ]
        for one in found
    ]
    head = ["examples", "chosen: exact, 59", "selection, ms: exact", "59", "fit, ms: exact", "59"]
    return table([*head, "paper, ms: exact", "59"], rows)
