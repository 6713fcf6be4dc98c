"""Accuracy with 100 Fourier features against the number of training examples, on Adult.

The right half of Table 4 of A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many
features", Machine Learning 91, 2013, on the splits of scripts.reproduce.kernels.

    python -m scripts.reproduce.adult_examples --data DIR
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scripts.reproduce import adult, kernels, moved_draws
from scripts.reproduce.adult import INPUTS, TRAINING, Adult, load, sets_of, splits
from scripts.reproduce.kernels import ALL, ONE, SQUARES, Choice, MapSetting
from scripts.reproduce.moved_draws import TUNED, Tuning
from scripts.reproduce.results import arguments, keep_runs, listed, stopwatch, table, write_page
from visionshare.machine.resources import thread_limit

RATIOS = (0.1, 0.3, 0.5, 0.7)
COLUMNS = 100
MAPS = ("Nystroem", "RBFSampler")
# Constants of --quick.
QUICK = {**kernels.QUICK, "COLUMNS": 10, "TUNINGS": moved_draws.TUNINGS[:2]}
NAMES = (ONE, ALL, TUNED, *MAPS)
PAPER = {
    ONE: ("84.23", "84.78", "84.91", "84.98"),
    ALL: ("84.34", "84.87", "84.95", "85.00"),
    "CSI": ("84.54", "84.72", "84.74", "84.84"),
}


@dataclass(frozen=True)
class Settings:
    """What cross-validation on the development rows chose."""

    choice: Choice
    tuning: Tuning
    maps: dict[str, MapSetting]


def choose(data: Adult, rows: np.ndarray, columns: int) -> Settings:
    """Return the settings of all methods; they are kept for every number of examples."""
    choice, _ = kernels.choose(data, rows, columns)
    tuning = moved_draws.best(moved_draws.choose_tuning(data, rows, columns))
    maps = {name: kernels.choose_map(data, name, rows, columns) for name in MAPS}
    return Settings(choice, tuning, maps)


def measure(
    data: Adult, split: Any, settings: Settings, seed: int, columns: int
) -> Iterator[dict[str, Any]]:
    """Yield accuracy and seconds of every method with so many of the split's training rows."""
    train, test = split
    for ratio in RATIOS:
        rows = train[: round(ratio * len(data.y))]
        for name in NAMES:
            with stopwatch(time.process_time) as seconds:
                accuracy = _accuracy(data, (rows, test), name, settings, seed, columns)
            run = {"method": name, "ratio": ratio, "seed": seed, "accuracy": accuracy}
            print(run := {**run, "seconds": seconds[0]}, flush=True)
            yield run


def _accuracy(
    data: Adult, split: Any, name: str, settings: Settings, seed: int, columns: int
) -> float:
    if name in MAPS:
        kind, square, cost = settings.maps[name]
        sets = sets_of(data, kind, *split)
        return kernels.mapped_accuracies(name, sets, square, columns, seed, (cost,))[0]
    if name == TUNED:
        X, y, X_test, y_test = sets_of(data, INPUTS[0], *split)
        drawn = moved_draws.drawn(X, columns, seed)
        tuned = moved_draws.tune(drawn, X, y, settings.tuning, seed)
        return float(np.mean(tuned.predict(X_test) == y_test))
    choice = settings.choice
    X, y, X_test, y_test = sets_of(data, choice.inputs, *split)
    squares = (choice.square,) if name == ONE else SQUARES
    path = kernels.learn(X, y, choice, squares, columns, seed)
    # A path that ends before has fewer columns.
    reached = min(columns, 2 * len(path.model.history_[-1].candidates))
    return path.accuracy(reached, X_test, y_test)


def _said(settings: Settings) -> list[list[str]]:
    choice, tuning = settings.choice, settings.tuning
    squares = f"σ² = {choice.square:g}, all kernels: {listed(SQUARES)}"
    grfl = f"{choice.inputs}; {squares}; λ = {choice.alpha:g}; {choice.loss}"
    smoothing = f"label smoothing {tuning.label_smoothing:g}"
    return [
        ["GrFL", grfl],
        [
            f"{TUNED}, as in [draws that move](moved_draws.md)",
            f"{tuning.epochs} epochs, rate {tuning.rate:g}, {smoothing}",
        ],
        *([name, f"{kind}; σ² = {square:g}; C = {cost:g}"]
          for name, (kind, square, cost) in settings.maps.items()),
    ]  # fmt: skip


def main() -> None:
    """Choose settings on the development rows, measure the splits and write the page."""
    options = arguments(__doc__).parse_args()
    data = load(options.data)
    with thread_limit(1):
        development, parts = splits(len(data.y), options.seeds)
        settings = choose(data, development[: kernels.CHOOSING], COLUMNS)
        print(settings, flush=True)
        runs: list[dict[str, Any]] = []
        for seed, split in enumerate(parts):
            runs += measure(data, split, settings, seed, COLUMNS)
            # A run that is stopped leaves the splits that it has measured.
            write(options, data, settings, runs)


def write(options: Any, data: Adult, settings: Settings, runs: list[dict[str, Any]]) -> None:
    """Write the page, and the runs as JSON."""
    accuracies: dict[tuple[str, int], list[float]] = {}
    seconds: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        key = (run["method"], round(run["ratio"] * len(data.y)))
        accuracies.setdefault(key, []).append(run["accuracy"])
        seconds.setdefault(key, []).append(run["seconds"])
    counts = sorted({count for _, count in accuracies})
    head = ["training examples", *(f"{n} ({n / len(data.y):.0%})" for n in counts)]
    keep_runs(options.out, "adult_examples", {"settings": asdict(settings), "runs": runs})
    write_page(
        options.out,
        "adult_examples",
        n_rows=len(data.y),
        test=f"{1 - TRAINING:.0%}",
        columns=COLUMNS,
        last_seed=runs[-1]["seed"],
        folds=adult.FOLDS,
        tuning_folds=adult.FOLDS,
        settings=table(["method", "settings"], _said(settings)),
        accuracies=table(head, kernels.rows_of(accuracies, seconds, NAMES)),
        paper=table(["paper", *(f"{r:.0%}" for r in RATIOS)], [[n, *v] for n, v in PAPER.items()]),
    )


if __name__ == "__main__":
    main()
