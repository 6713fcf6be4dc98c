"""AdaBoost beside GradBoost, round by round, until both are at the optimum.

Fig. 7 (right) and 8 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009: ℓ1/ℓ∞
on MNIST's kernel hypotheses and on LandSat's products. Part of
``python -m scripts.reproduce.kernel_hypotheses``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.coverage import coverage, products
from scripts.reproduce.results import plain, pyplot, render, table
from scripts.reproduce.uci import load
from visionshare import StructuralBoostingClassifier
from visionshare.columns import ArrayColumns
from visionshare.files.durable import write_text

SOLVERS, PENALTY, FRACTION = ("adaboost", "gradboost"), "l1/linf", 0.02
# With ten sweeps a round ends long before the weights inside are optimal, and so does the run.
SWEEPS, ENTERING, ROUNDS = 200, 50, 80
# How near to the optimum a run is said to have converged.
NEAR = (1e-1, 1e-2, 1e-3)

Examples = tuple[np.ndarray, np.ndarray]


class Curve(NamedTuple):
    """What a booster had after each round; sparsity is the fraction of zeros of W."""

    seconds: np.ndarray
    objective: np.ndarray
    error: np.ndarray
    coverage: np.ndarray
    sparsity: np.ndarray
    features: np.ndarray
    kkt: float


class Race(NamedTuple):
    """Both boosters on the same examples, and the optimum that another solver found."""

    name: str
    n_train: int
    n_columns: int
    alpha: float
    optimum: float
    optimum_kkt: float
    curves: dict[str, Curve]


def race(name: str, train: Examples, test: Examples, rounds: int) -> Race:
    """Return how both boosters came to the optimum of the same problem."""
    H, y = train
    settings: dict[str, Any] = {"penalty": PENALTY, "calibrate": False, "n_entering": ENTERING}
    exact = StructuralBoostingClassifier(
        solver="fista", criterion="violation", refit_tol=1e-4, tol=1e-4, max_iter=5000, **settings
    )
    columns = ArrayColumns(H)
    alpha = FRACTION * exact.alpha_max(columns, y)
    best = exact.set_params(alpha=alpha).fit(columns, y).history_[-1]
    curves = {}
    for solver in SOLVERS:
        learner = StructuralBoostingClassifier(
            solver=solver, alpha=alpha, rounds=rounds, max_iter=SWEEPS, refit_tol=1e-3, **settings
        )
        curves[solver] = curve(learner.fit(columns, y).history_, columns, test)
        print(name, solver, len(curves[solver].seconds), curves[solver].kkt, flush=True)
    return Race(name, len(y), H.shape[1], alpha, best.value, best.gap, curves)


def curve(history: Any, columns: ArrayColumns, test: Examples) -> Curve:
    """Return a run round by round, measured on the test examples."""
    offset, scale = columns.scaling_of()
    measured: dict[str, list[float]] = {name: [] for name in ("error", "coverage", "zeros", "n")}
    for step in history:
        ids = step.candidates
        scores = ((test[0][:, ids] - offset[ids]) * scale[ids]) @ step.coef.T + step.intercept
        measured["error"].append(float(np.mean(np.argmax(scores, axis=1) != test[1])))
        measured["coverage"].append(coverage(scores, test[1]))
        k = len(step.intercept)
        measured["zeros"].append(1 - np.count_nonzero(step.W) / (k * columns.shape[1]))
        measured["n"].append(len(ids))
    return Curve(
        seconds=np.cumsum([step.seconds for step in history]),
        objective=np.array([step.value for step in history]),
        error=np.array(measured["error"]),
        coverage=np.array(measured["coverage"]),
        sparsity=np.array(measured["zeros"]),
        features=np.array(measured["n"]),
        kkt=history[-1].gap,
    )


def mnist_race(
    digits: Any, support: np.ndarray, size: int, kernel: Callable[..., np.ndarray], length: float
) -> Race:  # fmt: skip
    """Return the race on the kernels of so many training images of each class."""
    rng, centers = np.random.default_rng(0), digits.X[support]
    of_class = [np.flatnonzero(digits.y == c) for c in np.unique(digits.y)]
    rows = np.concatenate([rng.choice(rows, size, replace=False) for rows in of_class])
    H, T = (
        kernel(part, centers, length).astype(np.float32) for part in (digits.X[rows], digits.X_test)
    )
    return race("MNIST", (H, digits.y[rows]), (T, digits.y_test), ROUNDS)


def landsat_race(data: Path, per_class: int = 240) -> Race:
    """Return the race on LandSat's products, so many training examples of each class."""
    X, y, train = load(data, "landsat")
    assert train is not None, "an official split"
    rng = np.random.default_rng(0)
    of_class = [np.flatnonzero(train & (y == c)) for c in np.unique(y)]
    rows = np.concatenate([rng.choice(rows, per_class, replace=False) for rows in of_class])
    Z = products(X, np.sort(rows))
    return race("LandSat", (Z[rows], y[rows]), (Z[~train], y[~train]), ROUNDS)


def kept_race(file: Path, run: Callable[[], Race]) -> Race:
    """Return the race of a file; one that is not there is run and kept."""
    if not file.is_file():
        write_text(file, json.dumps(plain(run())))
    content = json.loads(file.read_text(encoding="utf-8"))
    curves = {
        solver: Curve(**{name: np.array(value) for name, value in one.items() if name != "kkt"},
                      kkt=one["kkt"])
        for solver, one in content["curves"].items()
    }  # fmt: skip
    return Race(**{**content, "curves": curves})


def seconds_to(curve: Curve, optimum: float, nearness: float) -> str:
    """Return the seconds until the objective is so near to the optimum, relative to its value."""
    there = np.flatnonzero(curve.objective <= (1 + nearness) * optimum)
    return f"{curve.seconds[there[0]]:.1f}" if len(there) else "not reached"


def described(race: Race) -> str:
    """Return the part of the page about one set of examples."""
    rows = [
        [
            solver,
            len(run.seconds) - 1,
            *(seconds_to(run, race.optimum, nearness) for nearness in NEAR),
            f"{100 * run.error[-1]:.2f}",
            f"{int(run.features.max())}, {int(run.features[-1])}",
        ]
        for solver, run in race.curves.items()
    ]
    near = [f"s to {100 * nearness:g} %" for nearness in NEAR]
    header = ["solver", "rounds", *near, "error, %", "features, most and last"]
    return render(
        "kernel_hypotheses/race",
        name=race.name,
        n_train=race.n_train,
        n_columns=race.n_columns,
        optimum=f"{race.optimum:.2f}",
        optimum_kkt=f"{race.optimum_kkt:.1g}",
        boosters=table(header, rows),
    )


def draw_races(races: list[Race], path: Path) -> None:
    """Draw objective, error and sparsity against seconds."""
    plt = pyplot()
    figure, axes = plt.subplots(
        len(races), 3, figsize=(11, 3.2 * len(races)), constrained_layout=True, squeeze=False
    )
    for row, race in zip(axes, races, strict=True):
        for solver, run in race.curves.items():
            gap = np.maximum(run.objective / race.optimum - 1, 1e-6)
            for axis, values in zip(row, (gap, run.error, run.sparsity), strict=True):
                axis.plot(np.maximum(run.seconds, 1e-2), values, label=solver)
        labels = ("objective over the optimum, less 1", "test error", "fraction of zeros of W")
        for axis, label in zip(row, labels, strict=True):
            axis.set(xlabel="seconds", ylabel=label, xscale="log", title=race.name)
        row[0].set(yscale="log")
        row[1].set(yscale="log")
        row[0].legend()
    figure.savefig(path, dpi=80)
    plt.close(figure)
