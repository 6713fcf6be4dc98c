"""Fewer features for a linear classifier: what is lost, against how many are kept.

S. Shalev-Shwartz, N. Srebro, "Low ℓ1 norm and guarantees on sparsifiability", 2008: the two
constructions of the talk, and two classifiers of real data.

    python -m scripts.reproduce.sparsification --data DIR
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV, lars_path

from scripts.reproduce import spambase
from scripts.reproduce.results import (
    arguments,
    keep_runs,
    pyplot,
    render,
    spread,
    table,
    write_page,
)
from scripts.reproduce.sparsification_rates import described as described_rates
from scripts.reproduce.sparsification_rates import low_norms, rates
from visionshare import ForwardGreedyClassifier, ForwardGreedyRegressor
from visionshare.datasets import load_dataset
from visionshare.learners.sparsification import features_needed, sparsify
from visionshare.machine.resources import thread_limit

KEPT = (1, 2, 5, 10, 20, 50, 100, 200)
# Of these, the ones with a column on the page.
SHOWN = (5, 20, 200)
LOSSES = ("hinge", "logistic", "absolute")
EPS = (0.5, 2.0)
ROUNDS = 300
FULL, DRAWN, LARGEST, PATH = "all features", "draws", "largest weights", "start of the ℓ1 path"
GREEDY = {loss: f"greedy, {loss}" for loss in LOSSES}
METHODS = (DRAWN, *GREEDY.values(), LARGEST, PATH)


@dataclass(frozen=True)
class Problem:
    """Examples in [−1, 1] with labels ±1, and a linear classifier of them that uses everything."""

    name: str
    X: np.ndarray
    y: np.ndarray
    tests: np.ndarray
    truth: np.ndarray
    w: np.ndarray
    start: float

    @property
    def norm(self) -> float:
        """‖w‖₁."""
        return float(np.abs(self.w).sum())


@dataclass(frozen=True)
class Point:
    """Features that are used, error in percent and hinge risk on the test part."""

    features: int
    error: float
    risk: float


def spread_out(seed: int, m: int = 2000, d: int = 1000, bound: float = 3.0) -> Problem:
    """Return the tight construction: each of d inputs says a little, and all weights are alike.

    P(x_j = y) = (1 + 1/B)/2 and w_j = B/d; any predictor within ε needs Ω(B²/ε²) inputs.
    """
    rng = np.random.default_rng([0, seed])
    y, truth = rng.choice([-1.0, 1.0], m), rng.choice([-1.0, 1.0], m)
    agree = (1 + 1 / bound) / 2
    X, tests = (_copies(t, d, agree, rng) for t in (y, truth))
    return Problem("spread", X, y, tests, truth, np.full(d, bound / d), 0.0)


def groups(seed: int, m: int = 2000, s: int = 10, n: int = 100) -> Problem:
    """Return the construction where the largest weights fail.

    z_1 agrees with y with probability (1 + 2/3)/2, z_2 … z_s with (1 + 1/3)/2; each has n inputs
    that copy it with probability 7/8. The weights are the log-odds of each z, over its copies.
    """
    rng = np.random.default_rng([1, seed])
    agree = np.r_[2 / 3, np.full(s - 1, 1 / 3)]
    tables, labels = [], []
    for _ in range(2):
        y = rng.choice([-1.0, 1.0], m)
        z = [_copies(y, 1, (1 + a) / 2, rng)[:, 0] for a in agree]
        tables.append(np.hstack([_copies(column, n, 7 / 8, rng) for column in z]))
        labels.append(y)
    # A copy's mean is 3/4 of z.
    odds = np.log((1 + agree) / (1 - agree)) / 0.75
    w = np.repeat(odds / n, n)
    return Problem("groups", tables[0], labels[0], tables[1], labels[1], w, 0.0)


def _copies(y: np.ndarray, d: int, agree: float, rng: np.random.Generator) -> np.ndarray:
    """Return d columns that each agree with y with a probability."""
    agrees = rng.random((len(y), d)) < agree
    return np.where(agrees, y[:, None], -y[:, None]).astype(np.float32)


def spam(data: Path, seed: int) -> Problem:
    """Return spambase, log(1 + x), and an ℓ2 logistic classifier of it."""
    raw, y, part = spambase.load(data)
    order = np.random.default_rng([2, seed]).permutation(np.flatnonzero(part == 0))
    X = np.log1p(raw)
    return _learned("spambase", X[order], y[order], X[part == 1], y[part == 1])


def digits(data: Path, seed: int, most: int = 2000) -> Problem:
    """Return MNIST's 3 against 8, and an ℓ2 logistic classifier of their pixels."""
    parts = []
    for split in ("train", "test"):
        images = load_dataset("mnist", split, data).of_classes(["3", "8"])
        parts.append((images.images.reshape(len(images), -1) / 255.0, images.labels))
    rows = np.random.default_rng([3, seed]).permutation(len(parts[0][1]))[:most]
    return _learned("MNIST 3/8", parts[0][0][rows], parts[0][1][rows], *parts[1])


def _learned(
    name: str, X: np.ndarray, y: np.ndarray, tests: np.ndarray, truth: np.ndarray
) -> Problem:
    peak = np.abs(X).max(axis=0)
    scale = np.where(peak > 0, 1 / np.where(peak > 0, peak, 1), 0)
    X, tests = X * scale, np.clip(tests * scale, -1, 1)
    model = LogisticRegressionCV(
        Cs=np.logspace(-3, 1, 5), cv=3, max_iter=300, tol=1e-3, l1_ratios=(0,),
        use_legacy_attributes=False, scoring="neg_log_loss",
    ).fit(X, y)  # fmt: skip
    signs = [np.where(np.asarray(t) > 0, 1.0, -1.0) for t in (y, truth)]
    inputs = [part.astype(np.float32) for part in (X, tests)]
    start = float(model.intercept_[0])
    return Problem(name, inputs[0], signs[0], inputs[1], signs[1], model.coef_[0], start)


def evaluated(problem: Problem, w: np.ndarray, start: float) -> Point:
    """Return how good weights are on the test part."""
    scores = problem.tests @ w + start
    error = 100 * float(np.mean((scores > 0) != (problem.truth > 0)))
    risk = float(np.mean(np.maximum(0, 1 - problem.truth * scores)))
    return Point(int(np.count_nonzero(w)), error, risk)


def rescaled(problem: Problem, w: np.ndarray) -> Point:
    """Return the same with the scale and intercept of the lowest training risk: in its favor."""
    products = problem.X @ w
    size = max(float(np.std(products)), 1e-12)
    factors, starts = np.geomspace(0.03, 30, 25) / size, np.linspace(-3, 3, 25)
    best = (np.inf, 1.0, 0.0)
    for factor in factors:
        moved = factor * (products - products.mean())
        for start in starts:
            risk = float(np.mean(np.maximum(0, 1 - problem.y * (moved + start))))
            best = min(best, (risk, factor, start - factor * products.mean()))
    return evaluated(problem, w * best[1], best[2])


def drawn(problem: Problem, seed: int) -> Iterator[tuple[int, Point]]:
    """Yield the randomized procedure: as many draws as features are allowed."""
    for n in KEPT:
        yield n, evaluated(problem, sparsify(problem.w, n, seed), problem.start)


def largest(problem: Problem, seed: int) -> Iterator[tuple[int, Point]]:
    """Yield the largest weights, the others zero."""
    order = np.argsort(-np.abs(problem.w), kind="stable")
    for n in KEPT:
        w = np.zeros(len(problem.w))
        w[order[:n]] = problem.w[order[:n]]
        yield n, rescaled(problem, w)


def l1_path(problem: Problem, seed: int) -> Iterator[tuple[int, Point]]:
    """Yield the start of the ℓ1 path of squared errors."""
    X = problem.X.astype(np.float64)
    X, y = X - X.mean(axis=0), problem.y - problem.y.mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        coefs = lars_path(X, y, method="lasso", max_iter=max(KEPT) + 5)[2]
    counts = np.count_nonzero(coefs, axis=0)
    for n in KEPT:
        # The last step with so few.
        yield n, rescaled(problem, coefs[:, np.flatnonzero(counts <= n)[-1]])


def greedy(loss: str) -> Callable[[Problem, int], Iterator[tuple[int, Point]]]:
    """Return forward greedy selection on a smoothed loss, in the ball of ‖w‖₁.

    A third of the training examples chooses ε, by the hinge risk, for each number of features.
    """

    def points(problem: Problem, seed: int) -> Iterator[tuple[int, Point]]:
        third = len(problem.y) // 3
        X, y = problem.X, problem.y
        trial = replace(problem, X=X[third:], y=y[third:], tests=X[:third], truth=y[:third])
        risks = [[point.risk for _, point in greedy_path(trial, loss, eps)] for eps in EPS]
        paths = [list(greedy_path(problem, loss, eps)) for eps in EPS]
        for i, best in enumerate(np.argmin(risks, axis=0)):
            yield paths[best][i]

    return points


def greedy_path(problem: Problem, loss: str, eps: float) -> Iterator[tuple[int, Point]]:
    """Yield forward greedy selection with one ε."""
    kind = ForwardGreedyRegressor if loss == "absolute" else ForwardGreedyClassifier
    model = kind(problem.norm, loss=loss, eps=eps, rounds=ROUNDS, max_features=max(KEPT))
    model.fit(problem.X, problem.y)
    scale = 1 / np.maximum(np.abs(problem.X).max(axis=0), 1e-9)
    for n in KEPT:
        last = [r for r in model.rounds_[0] if len(r.candidates) <= n][-1]
        entered = model.support_[: len(last.candidates)]
        w = np.zeros(len(problem.w))
        w[entered] = last.coef[0] * scale[entered]
        yield n, evaluated(problem, w, float(last.intercept[0]))


PROCEDURES = {
    DRAWN: drawn,
    LARGEST: largest,
    PATH: l1_path,
    **{name: greedy(loss) for loss, name in GREEDY.items()},
}
Measured = dict[tuple[str, int], list[Point]]


def run(make: Callable[[int], Problem], seeds: int) -> tuple[Measured, Problem]:
    """Return the points of every procedure, a list entry per seed, and the last problem."""
    measured: Measured = {}
    for seed in range(seeds):
        problem = make(seed)
        measured.setdefault((FULL, 0), []).append(evaluated(problem, problem.w, problem.start))
        for name, procedure in PROCEDURES.items():
            for n, point in procedure(problem, seed):
                measured.setdefault((name, n), []).append(point)
        print(problem.name, seed, flush=True)
    return measured, problem


def guarantee(problem: Problem, n: float) -> float:
    """Return the ε that n draws keep, with probability 95 %, for a loss of slope 1."""
    return math.sqrt(features_needed(problem.norm, 1.0, 1.0) / n)


def draw(results: dict[str, tuple[Measured, Problem]], path: Path) -> None:
    """Draw error and hinge risk against the features that are kept."""
    plt = pyplot()

    k = len(results)
    figure, axes = plt.subplots(2, k, figsize=(4.2 * k, 7), constrained_layout=True, squeeze=False)
    for column, (name, (measured, problem)) in zip(axes.T, results.items(), strict=True):
        for axis, part in zip(column, ("error", "risk"), strict=True):
            for method in METHODS:
                ns = [n for n in KEPT if (method, n) in measured]
                means = [np.mean([getattr(p, part) for p in measured[method, n]]) for n in ns]
                axis.plot(ns, means, "--" if method in (LARGEST, PATH) else "-", marker="o", ms=3,
                          label=method)  # fmt: skip
            whole = float(np.mean([getattr(p, part) for p in measured[FULL, 0]]))
            axis.axhline(whole, color="0.5", lw=0.8, label=FULL)
            axis.set(xscale="log", xlabel="features", ylim=(0, None))
        grid = np.geomspace(1, 1e4, 60)
        column[1].plot(grid, [whole + guarantee(problem, n) for n in grid], color="0.7", ls=":",
                       label="guarantee of the draws")  # fmt: skip
        column[1].set_ylim(0, 2.5)
        column[0].set_title(f"{name}, ‖w‖₁ = {problem.norm:.1f}")
    axes[0, 0].set_ylabel("test error (%)")
    axes[1, 0].set_ylabel("test hinge risk")
    axes[1, 0].legend(fontsize=7)
    figure.savefig(path, dpi=80)


def rows_of(measured: Measured, part: str, digits: int) -> list[list[Any]]:
    """Return a table's rows: a procedure a row, features by column."""
    whole = spread([getattr(p, part) for p in measured[FULL, 0]], digits)
    rows: list[list[Any]] = [[FULL, *([whole] + [""] * (len(SHOWN) - 1))]]
    for method in METHODS:
        values = [measured.get((method, n), []) for n in SHOWN]
        cells = [spread([getattr(p, part) for p in v], digits) if v else "–" for v in values]
        rows.append([method, *cells])
    return rows


def write(out: Path, results: dict[str, tuple[Measured, Problem]], seeds: int) -> None:
    """Write page and picture of the problems that are complete."""
    draw(results, out / "sparsification.png")
    found, low = rates(), low_norms()
    measured = {name: points for name, (points, _) in results.items()}
    keep_runs(out, "sparsification", {"measured": measured, "rates": found, "low ℓ2": low})
    write_page(
        out,
        "sparsification",
        rounds=ROUNDS,
        eps=", ".join(map(str, EPS)),
        last_seed=seeds - 1,
        rates=described_rates(found, low),
        problems="\n\n".join(described(name, *result) for name, result in results.items()),
    )


def described(name: str, measured: Measured, problem: Problem) -> str:
    """Return the part of the page about one problem."""
    return render(
        "sparsification/problem",
        name=name,
        description=render(f"sparsification/{DESCRIPTIONS[name]}"),
        n_features=problem.X.shape[1],
        n_train=len(problem.y),
        n_test=len(problem.truth),
        norm=f"{problem.norm:.2f}",
        errors=table(_header(), rows_of(measured, "error", 1)),
    )


def _header() -> list[str]:
    return ["procedure", *map(str, SHOWN)]


DESCRIPTIONS = {
    "groups": "groups",
    "spread": "spread",
    "spambase": "spambase",
    "MNIST 3/8": "digits",
}


def main() -> None:
    """Run every procedure on every problem; write the page after each."""
    options = arguments(__doc__).parse_args()
    seeds = options.seeds
    small = {"m": 600} if options.quick else {}
    makers: dict[str, Callable[[int], Problem]] = {
        "groups": lambda seed: groups(seed, **small),
        "spambase": lambda seed: spam(options.data, seed),
        "spread": lambda seed: spread_out(seed, **small),
        "MNIST 3/8": lambda seed: digits(options.data, seed, 600 if options.quick else 2000),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, tuple[Measured, Problem]] = {}
    with thread_limit(options.jobs):
        for name, make in makers.items():
            results[name] = run(make, seeds)
            write(options.out, results, seeds)


if __name__ == "__main__":
    main()
