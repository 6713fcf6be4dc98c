"""LandSat with all products of its inputs: coverage and error against two kinds of sparsity.

The setting of Fig. 6 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009:
1296 products of 36 spectral values, multinomial loss, 240 training examples per class; paths for
ℓ1, ℓ1/ℓ2 and ℓ1/ℓ∞.

    python -m scripts.reproduce.coverage --data DIR
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import (
    arguments,
    keep_runs,
    pyplot,
    render,
    spread,
    table,
    write_page,
)
from scripts.reproduce.uci import load
from visionshare import StructuralBoostingClassifier
from visionshare.columns import ArrayColumns
from visionshare.learners import regularization_path
from visionshare.machine.resources import thread_limit

PER_CLASS = 240
ALPHAS, LEAST, PRODUCTS = 12, 1e-2, 1296
# Constants of --quick.
QUICK = {"ALPHAS": 5}
PENALTIES = ("l1", "l1/l2", "l1/linf")
# One optimum, several solvers: where GradBoost's own sweeps would take minutes, Newton's method.
SETTINGS: dict[str, Any] = {
    "solver": "newton",
    "calibrate": False,
    "refit_tol": 2e-3,
    "max_iter": 300,
}
FIELDS = ("error", "coverage")
ERRORS = (0.2, 0.19, 0.18, 0.17, 0.16, 0.155, 0.15, 0.145, 0.14)


class Point(NamedTuple):
    """One fitted classifier: what it costs and how it does on the test set."""

    rows: int
    zeros: float
    error: float
    coverage: float
    kkt: float


def ranks(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the position of each example's true class in its sorted scores, 0 where it is right.

    Among equal scores the class of the lower index comes first, as it does in a prediction.
    """
    Z = np.asarray(scores, np.float64)
    if Z.ndim == 1:
        # One score for two classes: the second is predicted where it is above 0.
        Z = np.column_stack([np.zeros(len(Z)), Z])
    true = Z[np.arange(len(y)), y][:, None]
    before = np.arange(Z.shape[1]) < y[:, None]
    return np.asarray(np.sum((true < Z) | ((true == Z) & before), axis=1))


def coverage(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the mean position of the true class; 0 is perfect, k − 1 the worst."""
    return float(ranks(scores, y).mean())


def products(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the products of two inputs that differ, inputs into [−1, 1] by training rows.

    Of the 36 · 36 products 630 are copies of others (x_i x_j and x_j x_i). A copy changes neither
    scores nor optimum and need not be computed twice: one of each is enough.
    """
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    Z = 2 * (X - low) / (high - low) - 1
    i, j = np.triu_indices(X.shape[1])
    return (Z[:, i] * Z[:, j]).astype(np.float32)


def path_of(
    X: np.ndarray, y: np.ndarray, test: tuple[np.ndarray, np.ndarray], penalty: str, n: int
) -> list[Point]:
    """Return the points of one penalty's path, from the largest alpha on."""
    learner = StructuralBoostingClassifier(penalty=penalty, **SETTINGS)
    points = []
    columns = ArrayColumns(X)
    for model in regularization_path(learner, columns, y, n=n, least=LEAST):
        scores = test[0][:, model.support_] @ model.coef_.T + model.intercept_
        rows, k = len(model.support_), len(model.classes_)
        zeros = 1 - np.count_nonzero(model.coef_) / (k * PRODUCTS)
        wrong = float(np.mean(np.argmax(scores, axis=1) != test[1]))
        at = Point(rows, zeros, wrong, coverage(scores, test[1]), model.history_[-1].gap)
        points.append(at)
    return points


def runs(options: Any) -> Iterator[dict[str, list[list[Point]]]]:
    """Yield, after each seed, the paths of every penalty, an entry a seed."""
    X, y, train = load(options.data, "landsat")
    assert train is not None, "an official split"
    measured: dict[str, list[list[Point]]] = {penalty: [] for penalty in PENALTIES}
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        rows = [
            rng.choice(np.flatnonzero(train & (y == c)), PER_CLASS, replace=False)
            for c in np.unique(y)
        ]
        chosen = np.sort(np.concatenate(rows))
        Z = products(X, chosen)
        test = Z[~train], y[~train]
        for penalty in PENALTIES:
            begun = time.perf_counter()
            points = path_of(Z[chosen], y[chosen], test, penalty, ALPHAS)
            measured[penalty].append(points)
            seconds = round(time.perf_counter() - begun, 1)
            print(seed, penalty, seconds, *points, sep="\n", flush=True)
        yield measured


def rows_at(points: list[Point], level: float, field: str) -> float:
    """Return the rows at which a path first reaches a level, between its points; nan if never.

    The best so far counts; rows are interpolated in the logarithm.
    """
    values = np.minimum.accumulate([getattr(p, field) for p in points])
    below = np.flatnonzero(values <= level)
    if len(below) == 0:
        return float("nan")
    i = int(below[0])
    if i == 0 or points[i - 1].rows == 0:
        return float(points[i].rows)
    fraction = (values[i - 1] - level) / (values[i - 1] - values[i])
    low, high = np.log(points[i - 1].rows), np.log(points[i].rows)
    return float(np.exp(low + fraction * (high - low)))


def needed(
    measured: dict[str, list[list[Point]]], levels: tuple[float, ...], field: str
) -> list[list[Any]]:
    """Return the rows of a table: features to reach each level, and ℓ1's over the others'."""
    rows = []
    for level in levels:
        counts = {p: [rows_at(path, level, field) for path in measured[p]] for p in PENALTIES}
        if any(not np.isfinite(v).all() for v in counts.values()):
            continue
        ratios = [spread(np.array(counts["l1"]) / np.array(counts[p])) for p in PENALTIES[1:]]
        rows.append([level, *(spread(counts[p], 0) for p in PENALTIES), *ratios])
    return rows


def draw(measured: dict[str, list[list[Point]]], path: Path) -> None:
    """Draw coverage and error against both kinds of sparsity, all seeds."""
    plt = pyplot()

    figure, axes = plt.subplots(2, 2, figsize=(10, 7), constrained_layout=True)
    for color, penalty in zip(("C0", "C1", "C2"), PENALTIES, strict=True):
        for seed, points in enumerate(measured[penalty]):
            nonempty = [p for p in points if p.rows > 0]
            sparse = {
                "fraction of zeros of W": [p.zeros for p in nonempty],
                "features used (rows of W that are not zero)": [p.rows for p in nonempty],
            }
            for row, field in zip(axes, ("coverage", "error"), strict=True):
                for axis, (label, x) in zip(row, sparse.items(), strict=True):
                    name = penalty if seed == 0 else None
                    values = [getattr(p, field) for p in nonempty]
                    axis.plot(x, values, "-", color=color, lw=1, alpha=0.7, label=name)
                    axis.set(xlabel=label, ylabel=f"test {field}")
    for row in axes:
        row[1].set_xscale("log")
    axes[0, 0].legend()
    figure.savefig(path, dpi=80)


def claim(measured: dict[str, list[list[Point]]], levels: tuple[float, ...]) -> str:
    """Return what the paths say to the paper's claim."""
    ratios = []
    for level in levels:
        pair = [[rows_at(path, level, "error") for path in measured[p]] for p in ("l1", "l1/l2")]
        if np.isfinite(pair).all():
            ratios.append(float(np.mean(np.array(pair[0]) / np.array(pair[1]))))
    if not ratios:
        return render("coverage/without-claim")
    return render(
        "coverage/claim",
        least=f"{min(ratios):.2f}",
        most=f"{max(ratios):.2f}",
        n_levels=len(ratios),
        n_above=sum(ratio >= 1.5 for ratio in ratios),
    )


def main() -> None:
    """Follow all paths and write the page, after each seed."""
    options = arguments(__doc__).parse_args()
    begun = time.perf_counter()
    with thread_limit(options.jobs):
        for measured in runs(options):
            write(options, measured, time.perf_counter() - begun)


def write(options: Any, measured: dict[str, list[list[Point]]], seconds: float) -> None:
    """Write page and picture of the seeds that are complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "coverage.png")
    worst = {p: max(q.kkt for path in measured[p] for q in path) for p in PENALTIES}
    header = [*(f"features, {p}" for p in PENALTIES), "l1 over l1/l2", "l1 over l1/linf"]
    lowest = [
        [
            p,
            *(
                spread([min(getattr(q, f) for q in path) for path in measured[p]], 4)
                for f in FIELDS
            ),
        ]
        for p in PENALTIES
    ]
    keep_runs(options.out, "coverage", measured)
    write_page(
        options.out,
        "coverage",
        per_class=PER_CLASS,
        last_seed=len(measured["l1"]) - 1,
        n_alphas=ALPHAS,
        least=f"{LEAST:g}",
        refit_tol=f"{SETTINGS['refit_tol']:g}",
        max_iter=SETTINGS["max_iter"],
        residuals=", ".join(f"{p} {worst[p]:.2g}" for p in PENALTIES),
        by_error=table(["test error", *header], needed(measured, ERRORS, "error")),
        lowest=table(["penalty", "test error", "test coverage"], lowest),
        claim=claim(measured, ERRORS),
    )


if __name__ == "__main__":
    main()
