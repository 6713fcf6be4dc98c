"""Draws that move: uphill before they enter, or all together with the weights: Adult.

GrFL with Fourier pairs whose frequencies move along the gradient, pairs drawn at random whose
frequencies fine-tuning moves, fresh draws alone, and scikit-learn's Nystroem and RBFSampler, on the
splits of scripts.reproduce.kernels.

    python -m scripts.reproduce.moved_draws --data DIR
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from scripts.reproduce import kernels
from scripts.reproduce.adult import (
    FOLDS,
    INPUTS,
    TRAINING,
    Adult,
    folds_of,
    load,
    sets_of,
    splits,
)
from scripts.reproduce.kernels import (
    PATIENCE,
    REFIT_TOL,
    Learned,
    choose_map,
    mapped_accuracies,
    rows_of,
)
from scripts.reproduce.results import arguments, keep_runs, stopwatch, table, write_page
from visionshare import CompactClassifier, GroupFeatureClassifier, RandomFourier
from visionshare.generators.base import FeatureFamily
from visionshare.generators.draws import Draws
from visionshare.learners.fine_tuning import FineTuning, fine_tune
from visionshare.machine.resources import thread_limit
from visionshare.store import DrawnColumns

STILL, MOVED = "GrFL, draws alone", "GrFL, moved draws"
GUIDED = "GrFL, screened and moved draws"
TUNED, BOTH = "drawn and tuned", "GrFL, moved draws, tuned"
MAPS = ("Nystroem", "RBFSampler")
NAMES = (STILL, MOVED, GUIDED, BOTH, TUNED, *MAPS)
WIDTHS, WIDEST = (10, 20, 50, 100), 500
# σ² of the draws, and what is tried for each: draws a round, those scored on all rows, steps, λ.
SQUARE = 100.0
ALPHAS = (0.02, 0.1, 0.5, 2.0, 10.0)
TRIED = {
    STILL: list(itertools.product((50,), (50,), (0,), ALPHAS)),
    MOVED: list(itertools.product((10,), (10,), (2, 5, 10), ALPHAS)),
    GUIDED: list(itertools.product((100,), (10,), (2, 5, 10), ALPHAS)),
}
# Examples of a step.
BATCH = 256
# What fine-tuning has in common, and what is tried for each number of columns.
COMMON: dict[str, Any] = {
    "head": "linear", "alpha": 1e-3, "margin": 0.0, "validation_fraction": 0.0,
}  # fmt: skip
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
TUNINGS = list(itertools.product((5, 10, 20, 40), RATES, (0.0, 0.2, 0.4)))
# Constants of --quick.
QUICK = {
    **kernels.QUICK, "WIDTHS": WIDTHS[:2], "WIDEST": 50, "TUNINGS": TUNINGS[:2], "ALPHAS": ALPHAS,
    "TRIED": {name: tried[2:4] for name, tried in TRIED.items()},
}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """Draws a round, those that are scored on all rows, steps that the best takes, λ."""

    draws: int
    keep: int
    steps: int
    alpha: float


def learn(X: np.ndarray, y: np.ndarray, choice: Choice, budget: int, seed: int) -> Learned:
    """Return GrFL's path up to ``budget`` columns, with the seconds of the processor."""
    family = RandomFourier(bandwidths=(float(np.sqrt(SQUARE)),), scaling="none").fit(X)
    rounds = (PATIENCE + 1) * budget
    columns = DrawnColumns(Draws(family, choice.draws, rounds, seed), X)
    wall, busy = time.perf_counter(), time.process_time()
    model = GroupFeatureClassifier(
        "squared_hinge",
        alpha=choice.alpha,
        search="sampled",
        search_options={"steps": choice.steps, "keep": choice.keep},
        rounds=budget,
        max_features=budget,
        patience=PATIENCE,
        refit_tol=REFIT_TOL,
    ).fit(columns, y)
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    seconds = np.cumsum([step.seconds for step in model.history_])
    return Learned(model, columns, min(1.0, busy / wall) * seconds)


@dataclass(frozen=True)
class Tuning:
    """Settings of fine-tuning."""

    epochs: int
    rate: float
    label_smoothing: float


def tune(
    family: FeatureFamily,
    X: np.ndarray,
    y: np.ndarray,
    tuning: Tuning,
    seed: int,
    batch: int = BATCH,
) -> CompactClassifier:
    """Return a classifier of moved pairs, from weights of 0; a batch is one step."""
    weights, intercept = np.zeros((2, family.n_features_), np.float32), np.zeros(2, np.float32)
    start = CompactClassifier(family, weights, intercept, np.array([0, 1]))
    settings = {**COMMON, **asdict(tuning), "batch": batch, "random_state": seed}
    return fine_tune(start, X, y, FineTuning(**settings))


def drawn(X: np.ndarray, width: int, seed: int) -> RandomFourier:
    """Return pairs drawn at random."""
    family = RandomFourier(
        width // 2, bandwidths=(float(np.sqrt(SQUARE)),), scaling="none", random_state=seed
    )
    return family.fit(X)


def choose_tuning(data: Adult, rows: np.ndarray, width: int) -> dict[Tuning, float]:
    """Return the mean accuracy of every setting over the folds."""
    scores = dict.fromkeys(itertools.starmap(Tuning, TUNINGS), 0.0)
    for train, validation in folds_of(rows):
        X, y, X_test, y_test = sets_of(data, INPUTS[0], train, validation)
        for tuning in scores:
            found = tune(drawn(X, width, 0), X, y, tuning, 0)
            scores[tuning] += float(np.mean(found.predict(X_test) == y_test)) / FOLDS
    return scores


def validated(data: Adult, rows: np.ndarray, choice: Choice, budget: int) -> float:
    """Return the mean accuracy over the folds, with as many columns or as there are."""
    accuracies = []
    for train, validation in folds_of(rows):
        X, y, X_test, y_test = sets_of(data, INPUTS[0], train, validation)
        path = learn(X, y, choice, budget, 0)
        last = 2 * len(path.model.history_[-1].candidates)
        accuracies.append(path.accuracy(min(budget, last), X_test, y_test))
    return float(np.mean(accuracies))


def measure(data: Adult, split: Any, chosen: dict[Any, Any], seed: int) -> list[dict[str, Any]]:
    """Return accuracy and seconds of every method and number of columns on one split."""
    sets = X, y, X_test, y_test = sets_of(data, INPUTS[0], *split)
    runs: list[dict[str, Any]] = []
    for name in (STILL, MOVED, GUIDED):
        runs += measure_path(sets, name, chosen, seed)
    for width in (*WIDTHS, WIDEST):
        with stopwatch(time.process_time) as seconds:
            found = tune(drawn(X, width, seed), X, y, chosen[TUNED, width], seed)
        accuracy = float(np.mean(found.predict(X_test) == y_test))
        runs.append(_run(TUNED, width, seed, accuracy, seconds[0]))
        for name in MAPS:
            kind, square, cost = chosen[name, width]
            with stopwatch(time.process_time) as seconds:
                mapped = sets_of(data, kind, *split)
                accuracy = mapped_accuracies(name, mapped, square, width, seed, (cost,))[0]
            runs.append(_run(name, width, seed, accuracy, seconds[0]))
    return runs


def measure_path(
    sets: Any, name: str, chosen: dict[Any, Any], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield accuracy and seconds of GrFL's path, where draws moved those of its tuned pairs too."""
    X, y, X_test, y_test = sets
    path = learn(X, y, chosen[name], max(WIDTHS), seed)
    for width in WIDTHS:
        step = path.at(width)
        if step is None:
            continue
        before = float(path.seconds[path.model.history_.index(step)])
        yield _run(name, width, seed, path.accuracy(width, X_test, y_test), before)
        if name == MOVED:
            family = path.columns.draws.take((2 * step.candidates[:, None] + np.arange(2)).ravel())
            with stopwatch(time.process_time) as seconds:
                found = tune(family, X, y, chosen[TUNED, width], seed)
            accuracy = float(np.mean(found.predict(X_test) == y_test))
            yield _run(BOTH, width, seed, accuracy, before + seconds[0])


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
        development = development[: kernels.CHOOSING]
        tried: list[list[Any]] = []
        chosen: dict[Any, Any] = {}
        for name, settings in TRIED.items():
            scores = {}
            for setting in itertools.starmap(Choice, settings):
                scores[setting] = validated(data, development, setting, kernels.CHOSEN_ON)
                tried.append([name, *asdict(setting).values(), f"{100 * scores[setting]:.2f}"])
            chosen[name] = best(scores)
        tunings = {}
        for width in (*WIDTHS, WIDEST):
            tunings[width] = choose_tuning(data, development, width)
            chosen[TUNED, width] = best(tunings[width])
            chosen |= {(name, width): choose_map(data, name, development, width) for name in MAPS}
            print({name: chosen[name, width] for name in (TUNED, *MAPS)}, flush=True)
        runs: list[dict[str, Any]] = []
        for seed, split in enumerate(parts):
            runs += measure(data, split, chosen, seed)
            # A run that is stopped leaves the splits that it has measured.
            write(options, data, chosen, {"GrFL": tried, "tuned": tunings}, runs)


def best(scores: dict[Any, float]) -> Any:
    """Return the key of the largest score."""
    return max(scores.items(), key=itemgetter(1))[0]


def write(
    options: Any,
    data: Adult,
    chosen: dict[Any, Any],
    tried: dict[str, Any],
    runs: list[dict[str, Any]],
) -> None:
    """Write the page, and the runs as JSON."""
    accuracies: dict[tuple[str, int], list[float]] = {}
    seconds: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        accuracies.setdefault((run["method"], run["columns"]), []).append(run["accuracy"])
        seconds.setdefault((run["method"], run["columns"]), []).append(run["seconds"])
    head = ["columns", *map(str, (*WIDTHS, WIDEST))]
    keep_runs(options.out, "moved_draws", {"chosen": chosen, "tried": tried, "runs": runs})
    write_page(
        options.out,
        "moved_draws",
        n_rows=len(data.y),
        training=f"{TRAINING:.0%}",
        last_seed=runs[-1]["seed"],
        folds=FOLDS,
        square=f"{SQUARE:g}",
        accuracies=table(
            head, rows_of(accuracies, seconds, (STILL, MOVED, GUIDED, BOTH, TUNED, *MAPS))
        ),
    )


if __name__ == "__main__":
    main()
