"""Draws that take steps uphill before they enter, beside draws that stay: Adult.

GrFL with Fourier pairs whose frequencies move along the gradient, beside fresh draws alone and
scikit-learn's Nystroem and RBFSampler, on the splits of scripts.reproduce.kernels.

    python -m scripts.reproduce.moved_draws --data DIR
"""

from __future__ import annotations

import itertools
import time
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from scripts.reproduce.adult import INPUTS, TRAINING, Adult, load, sets_of, splits
from scripts.reproduce.kernels import (
    COSTS,
    PATIENCE,
    REFIT_TOL,
    SQUARES,
    Learned,
    mapped_accuracies,
    rows_of,
)
from scripts.reproduce.results import arguments, keep_runs, table, write_page
from visionshare import GroupFeatureClassifier, RandomFourier
from visionshare.generators.draws import Draws
from visionshare.resources import thread_limit
from visionshare.store import DrawnColumns

STILL, MOVED = "GrFL, draws alone", "GrFL, moved draws"
MAPS = ("Nystroem", "RBFSampler")
WIDTHS = (10, 20, 50, 100)
# σ² of the draws, and what is tried for each: draws a round, steps, λ.
SQUARE = 100.0
TRIED = {
    STILL: [(50, 0, alpha) for alpha in (0.02, 0.1, 0.5, 2.0)],
    MOVED: list(itertools.product((10,), (2, 5, 10), (0.1, 0.5, 2.0, 8.0))),
}
FOLDS = 5


@dataclass(frozen=True)
class Choice:
    """Draws a round, steps that the best takes, λ."""

    draws: int
    steps: int
    alpha: float


def learn(X: np.ndarray, y: np.ndarray, choice: Choice, budget: int, seed: int) -> Learned:
    """Return GrFL's path up to ``budget`` columns."""
    family = RandomFourier(bandwidths=(float(np.sqrt(SQUARE)),), scaling="none").fit(X)
    rounds = (PATIENCE + 1) * budget
    columns = DrawnColumns(Draws(family, choice.draws, rounds, seed), X)
    model = GroupFeatureClassifier(
        "squared_hinge",
        alpha=choice.alpha,
        search="sampled",
        search_options={"steps": choice.steps},
        rounds=budget,
        max_features=budget,
        patience=PATIENCE,
        refit_tol=REFIT_TOL,
    ).fit(columns, y)
    return Learned(model, columns, np.cumsum([step.seconds for step in model.history_]))


def folds_of(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and validation rows of each fold."""
    parts = np.array_split(rows, FOLDS)
    return [(np.concatenate(parts[:i] + parts[i + 1 :]), parts[i]) for i in range(FOLDS)]


def validated(data: Adult, rows: np.ndarray, choice: Choice, budget: int) -> float:
    """Return the mean accuracy over the folds, with as many columns or as there are."""
    accuracies = []
    for train, validation in folds_of(rows):
        X, y, X_test, y_test = sets_of(data, INPUTS[0], train, validation)
        path = learn(X, y, choice, budget, 0)
        last = 2 * len(path.model.history_[-1].candidates)
        accuracies.append(path.accuracy(min(budget, last), X_test, y_test))
    return float(np.mean(accuracies))


def choose_map(data: Adult, name: str, rows: np.ndarray, budget: int) -> tuple[float, float]:
    """Return the best σ² and cost of one of scikit-learn's maps."""
    scores: dict[tuple[float, float], float] = {}
    for train, validation in folds_of(rows):
        sets = sets_of(data, INPUTS[0], train, validation)
        for square in SQUARES:
            found = mapped_accuracies(name, sets, square, budget, 0, COSTS)
            for cost, accuracy in zip(COSTS, found, strict=True):
                scores[square, cost] = scores.get((square, cost), 0.0) + accuracy
    return max(scores, key=lambda key: scores[key])


def measure(data: Adult, split: Any, chosen: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Return accuracy and seconds of every method and number of columns on one split."""
    X, y, X_test, y_test = sets_of(data, INPUTS[0], *split)
    runs = []
    for name in (STILL, MOVED):
        path = learn(X, y, chosen[name], max(WIDTHS), seed)
        for width in WIDTHS:
            step = path.at(width)
            if step is not None:
                seconds = float(path.seconds[path.model.history_.index(step)])
                accuracy = path.accuracy(width, X_test, y_test)
                runs.append(_run(name, width, seed, accuracy, seconds))
    for name in MAPS:
        square, cost = chosen[name]
        for width in WIDTHS:
            begun = time.perf_counter()
            sets = (X, y, X_test, y_test)
            accuracy = mapped_accuracies(name, sets, square, width, seed, (cost,))[0]
            runs.append(_run(name, width, seed, accuracy, time.perf_counter() - begun))
    return runs


def _run(name: str, width: int, seed: int, accuracy: float, seconds: float) -> dict[str, Any]:
    run = {"method": name, "columns": width, "seed": seed, "accuracy": accuracy, "seconds": seconds}
    print(run, flush=True)
    return run


def main() -> None:
    """Choose settings on the development rows, measure the splits, write the page."""
    options = arguments(__doc__).parse_args()
    data = load(options.data)
    with thread_limit(1):
        development, parts = splits(len(data.y), options.seeds)
        development = development[:1500] if options.quick else development
        budget = 10 if options.quick else 50
        tried: list[list[Any]] = []
        chosen: dict[str, Any] = {}
        for name, settings in TRIED.items():
            scores = {}
            for setting in itertools.starmap(Choice, settings):
                scores[setting] = validated(data, development, setting, budget)
                tried.append([name, *asdict(setting).values(), f"{100 * scores[setting]:.2f}"])
            chosen[name] = max(scores.items(), key=itemgetter(1))[0]
        chosen |= {name: choose_map(data, name, development, budget) for name in MAPS}
        measured = (measure(data, split, chosen, seed) for seed, split in enumerate(parts))
        runs = list(itertools.chain.from_iterable(measured))
    write(options, data, chosen, tried, runs)


def write(
    options: Any,
    data: Adult,
    chosen: dict[str, Any],
    tried: list[list[Any]],
    runs: list[dict[str, Any]],
) -> None:
    """Write the page, and the runs as JSON."""
    options.out.mkdir(parents=True, exist_ok=True)
    accuracies: dict[tuple[str, int], list[float]] = {}
    seconds: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        accuracies.setdefault((run["method"], run["columns"]), []).append(run["accuracy"])
        seconds.setdefault((run["method"], run["columns"]), []).append(run["seconds"])
    settings = [
        [name, *asdict(found).values()] for name, found in chosen.items() if name not in MAPS
    ]
    maps = [[name, f"{chosen[name][0]:g}", f"{chosen[name][1]:g}"] for name in MAPS]
    head = ["columns", *map(str, WIDTHS)]
    keep_runs(options.out, "moved_draws", runs)
    write_page(
        options.out,
        "moved_draws",
        n_rows=len(data.y),
        training=f"{TRAINING:.0%}",
        last_seed=options.seeds - 1,
        folds=FOLDS,
        square=f"{SQUARE:g}",
        accuracies=table(head, rows_of(accuracies, seconds, (STILL, MOVED, *MAPS))),
        settings=table(["method", "draws a round", "steps", "λ"], settings),
        maps=table(["map", "σ²", "C"], maps),
        tried=table(["method", "draws a round", "steps", "λ", "accuracy"], tried),
    )


if __name__ == "__main__":
    main()
