"""Large-scale kernel machines of few features: random Fourier pairs on Adult.

The left half of Table 4 of A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many
features", Machine Learning 91, 2013, beside scikit-learn's Nystroem and RBFSampler.

    python -m scripts.reproduce.kernels --data DIR --long 5

Paths of GrFL that are in the raw runs beside the page are not learned again, so that splits can be
added by and by; with another --out all are.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.svm import LinearSVC

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
from scripts.reproduce.results import (
    arguments,
    commit,
    deviation,
    keep_runs,
    kept_runs,
    plain,
    pyplot,
    spread,
    table,
    write_page,
)  # fmt: skip
from visionshare import GroupFeatureClassifier, RandomFourier
from visionshare.batch.worker_processes import worker_processes
from visionshare.generators.draws import Draws
from visionshare.machine.resources import thread_limit
from visionshare.store import DrawnColumns

# From a seventeenth to 600 times the median squared distance of two rows, 17.
SQUARES = (1.0, 5.0, 15.0, 40.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
# As the C of a support vector machine λ is not scaled by the number of rows.
ALPHAS, FIRST = (0.004, 0.02, 0.1, 0.5, 2.0, 10.0), 0.1
COSTS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7)
# Many columns take as long as all others together: without the widest kernel, the largest costs.
LONG_SQUARES, LONG_COSTS = SQUARES[:-1], COSTS[:-3]
DRAWS = 50
BUDGETS = (10, 50, 100, 500)
# Rows that choose settings; None for all of the development rows.
CHOOSING: int | None = None
WIDTHS, LONG_WIDTHS = (10, 20, 50, 100), (200, 500)
# Columns of the paths that choose GrFL's settings.
CHOSEN_ON = 50
# Constants of --quick.
QUICK = {
    "SQUARES": SQUARES[3:5], "ALPHAS": ALPHAS[2:4], "COSTS": COSTS[:2], "WIDTHS": WIDTHS[:2],
    "CHOOSING": 1500, "CHOSEN_ON": 10,
}  # fmt: skip
PATIENCE = 5
# λ is small: a tighter residual, as a fraction of λ, is below what float32 columns can show.
REFIT_TOL = 0.05
ONE, ALL = "GrFL, one kernel", "GrFL, all kernels"
PAPER = {
    ONE: ("83.82", "84.76", "84.98", "85.24"),
    ALL: ("83.77", "84.86", "85.00", "85.30"),
}


@dataclass(frozen=True)
class Choice:
    """What cross-validation chose for GrFL: inputs, σ², λ and the loss."""

    inputs: str
    square: float
    alpha: float
    loss: str = "squared_hinge"


# Values of a method with so many columns, one for each split.
Values = dict[tuple[str, int], list[float]]
# Inputs, σ² and C of a map; those of each number of columns by the map's name.
MapSetting = tuple[str, float, float]
Maps = dict[str, dict[int, MapSetting]]


@dataclass(frozen=True)
class Chosen:
    """GrFL's choices, what was tried for them, and inputs, σ² and C of scikit-learn's maps.

    ``long`` is the choice of paths of many columns.
    """

    choice: Choice
    long: Choice
    tried: list[list[Any]]
    maps: Maps


@dataclass
class Learned:
    """A learned path and what scores any of its rounds."""

    model: GroupFeatureClassifier
    columns: DrawnColumns
    seconds: np.ndarray

    def at(self, budget: int) -> Any:
        """Return the first round with at least so many columns, None if there is none."""
        reached = [r for r in self.model.history_ if 2 * len(r.candidates) >= budget]
        return reached[0] if reached else None

    def accuracy(self, budget: int, X: np.ndarray, y: np.ndarray) -> float:
        """Return the accuracy of that round, nan if there is none."""
        step = self.at(budget)
        if step is None:
            return float("nan")
        ids = (2 * step.candidates[:, None] + np.arange(2)).ravel()
        coef, b = self.columns.unscaled(step.coef, step.intercept, ids)
        scores = self.columns.draws.take(ids).transform(X) @ coef[0] + b[0]
        return float(np.mean((scores > 0) == y))


def learn(
    X: np.ndarray, y: np.ndarray, choice: Choice, squares: tuple[float, ...], budget: int, seed: int
) -> Learned:
    """Return GrFL's path with Fourier pairs of these bandwidths, up to ``budget`` columns."""
    family = RandomFourier(bandwidths=tuple(np.sqrt(squares)), scaling="none").fit(X)
    draws = Draws(family, n=DRAWS * len(squares), rounds=(PATIENCE + 1) * budget, random_state=seed)
    columns = DrawnColumns(draws, X)
    model = GroupFeatureClassifier(
        choice.loss,
        alpha=choice.alpha,
        search="sampled",
        rounds=budget,
        max_features=budget,
        patience=PATIENCE,
        refit_tol=REFIT_TOL,
    ).fit(columns, y)
    return Learned(model, columns, np.cumsum([step.seconds for step in model.history_]))


def validated(data: Adult, rows: np.ndarray, choice: Choice, budget: int) -> float:
    """Return GrFL's mean accuracy over the folds."""
    accuracies = []
    for train, validation in folds_of(rows):
        X = data.table(choice.inputs, train, train)
        path = learn(X, data.y[train], choice, (choice.square,), budget, 0)
        last = 2 * len(path.model.history_[-1].candidates)
        X = data.table(choice.inputs, train, validation)
        accuracies.append(path.accuracy(min(budget, last), X, data.y[validation]))
    return float(np.mean(accuracies))


def choose(data: Adult, rows: np.ndarray, budget: int) -> tuple[Choice, list[list[Any]]]:
    """Return the best inputs and σ², then the best λ and loss for them, with all that was tried."""
    tried: dict[Choice, float] = {}

    def best_of(choices: list[Choice]) -> Choice:
        for choice in choices:
            if choice not in tried:
                tried[choice] = validated(data, rows, choice, budget)
                print(choice, tried[choice], flush=True)
        return max(choices, key=lambda choice: tried[choice])

    first = best_of([Choice(i, s, FIRST) for i, s in itertools.product(INPUTS, SQUARES)])
    losses = ("squared_hinge", "logistic")
    pairs = itertools.product(ALPHAS, losses)
    best = best_of([Choice(first.inputs, first.square, alpha, loss) for alpha, loss in pairs])
    rows_ = [
        [c.inputs, f"{c.square:g}", c.alpha, c.loss, f"{100 * a:.2f}"] for c, a in tried.items()
    ]
    return best, rows_


def choose_long(data: Adult, rows: np.ndarray, choice: Choice, budget: int) -> Choice:
    """Return the choice with the largest λ whose path on these rows has so many columns."""
    X = data.table(choice.inputs, rows, rows)
    for alpha in sorted(ALPHAS, reverse=True):
        long = replace(choice, alpha=alpha)
        if learn(X, data.y[rows], long, (choice.square,), budget, 0).at(budget) is not None:
            break
    return long


def feature_map(name: str, square: float, n: int, seed: int) -> Any:
    """Return scikit-learn's map of the Gaussian kernel of this σ²."""
    kind = {"Nystroem": Nystroem, "RBFSampler": RBFSampler}[name]
    return kind(gamma=0.5 / square, n_components=n, random_state=seed)


def mapped_accuracies(
    name: str, sets: Any, square: float, n: int, seed: int, costs: tuple[float, ...]
) -> list[float]:
    """Return a linear machine's accuracies on one feature map, one per cost."""
    X, y, X_test, y_test = sets
    lift = feature_map(name, square, n, seed).fit(X)
    Z, Q = lift.transform(X), lift.transform(X_test)
    machines = (LinearSVC(C=cost, dual=False).fit(Z, y) for cost in costs)
    return [float(np.mean(machine.predict(Q) == y_test)) for machine in machines]


def choose_map(data: Adult, name: str, rows: np.ndarray, width: int) -> MapSetting:
    """Return the best inputs, σ² and cost of one of scikit-learn's maps with so many columns."""
    scores: dict[MapSetting, float] = {}
    squares, costs = (SQUARES, COSTS) if width in WIDTHS else (LONG_SQUARES, LONG_COSTS)
    for kind, (train, validation) in itertools.product(INPUTS, folds_of(rows)):
        sets = sets_of(data, kind, train, validation)
        for square in squares:
            accuracies = mapped_accuracies(name, sets, square, width, 0, costs)
            for cost, accuracy in zip(costs, accuracies, strict=True):
                key = (kind, square, cost)
                scores[key] = scores.get(key, 0.0) + accuracy
    return max(scores, key=lambda key: scores[key])


class Point(NamedTuple):
    """What a method with so many columns gave on one split."""

    name: str
    width: int
    seed: int
    accuracy: float
    seconds: float
    commit: str


def measure_maps(
    data: Adult, split: Any, maps: Maps, widths: tuple[int, ...], seed: int
) -> list[Point]:
    """Measure scikit-learn's maps on one split."""
    measured = []
    for name, choices in maps.items():
        for width in widths:
            kind, square, cost = choices[width]
            sets = sets_of(data, kind, *split)
            begun = time.perf_counter()
            accuracy = mapped_accuracies(name, sets, square, width, seed, (cost,))[0]
            seconds = time.perf_counter() - begun
            measured.append(Point(name, width, seed, accuracy, seconds, commit()))
            print(measured[-1], flush=True)
    return measured


def measure_path(
    data: Adult, split: Any, name: str, choice: Choice, widths: Any, seed: int
) -> list[Point]:
    """Return name, width, accuracy and seconds of one path of GrFL on one split."""
    X, y, X_test, y_test = sets_of(data, choice.inputs, *split)
    squares = (choice.square,) if name == ONE else SQUARES
    measured = []
    with thread_limit(1):
        path = learn(X, y, choice, squares, max(widths), seed)
    for width in widths:
        step = path.at(width)
        if step is not None:
            seconds = path.seconds[path.model.history_.index(step)]
            accuracy = path.accuracy(width, X_test, y_test)
            point = Point(name, width, seed, accuracy, float(seconds), commit())
            measured.append(point)
    return measured


def rows_of(accuracies: Values, seconds: Values, names: Sequence[str]) -> list[list[str]]:
    """Return the table's rows: a method each, a column for each number of features."""
    widths = sorted({width for _, width in accuracies})

    def cell(at: tuple[str, int]) -> str:
        if at not in accuracies:
            return "–"
        accuracy = spread([100 * one for one in accuracies[at]])
        return f"{accuracy} ({len(accuracies[at])}; {np.mean(seconds[at]):.0f} s)"

    return [[name, *(cell((name, width)) for width in widths)] for name in names]


def by_columns(measured: Sequence[Point]) -> tuple[Values, Values]:
    """Return accuracies and seconds by method and number of columns, a value a split."""
    accuracies: Values = {}
    seconds: Values = {}
    for point in measured:
        at = (point.name, point.width)
        accuracies.setdefault(at, []).append(point.accuracy)
        seconds.setdefault(at, []).append(point.seconds)
    return accuracies, seconds


def draw(measured: Sequence[Point], names: Sequence[str], path: Path) -> None:
    """Draw accuracy against the number of columns."""
    plt = pyplot()

    figure, axis = plt.subplots(figsize=(6, 4), constrained_layout=True)
    for name in names:
        points = [point for point in measured if point.name == name]
        widths = sorted({point.width for point in points})
        found = [[100 * p.accuracy for p in points if p.width == width] for width in widths]
        means, deviations = [np.mean(a) for a in found], [deviation(a) for a in found]
        axis.errorbar(widths, means, deviations, label=name)
    axis.set(xscale="log", xlabel="columns (two per pair)", ylabel="accuracy in percent")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=90)


def kept(out: Path, chosen: Chosen) -> list[Point]:
    """Return GrFL's points of the raw runs beside the page, where their settings are the same."""
    runs = kept_runs(out, "kernels")
    choices = {"choice": plain(chosen.choice), "long": plain(chosen.long)}
    if runs is None or any(runs["chosen"].get(key) != choice for key, choice in choices.items()):
        return []
    points = [Point(*map(values.get, Point._fields)) for values in runs["measured"]]
    return [point for point in points if point.name in PAPER]


def write(options: Any, data: Adult, rows: int, chosen: Chosen, measured: Sequence[Point]) -> None:
    """Write page and picture of what is there so far; ``rows`` chose the settings."""
    names = [*PAPER, *chosen.maps]
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, names, options.out / "kernels.png")
    widths = sorted({point.width for point in measured})
    keep_runs(options.out, "kernels", {"chosen": chosen, "measured": measured})
    write_page(
        options.out,
        "kernels",
        n_rows=len(data.y),
        n_inputs=data.numbers.shape[1] + data.categories.shape[1],
        training=f"{TRAINING:.0%}",
        last_seed=options.seeds - 1,
        n_long=options.long,
        long_widths=" and ".join(map(str, LONG_WIDTHS)),
        commits=", ".join(dict.fromkeys(point.commit for point in measured)),
        folds=FOLDS,
        n_development=rows,
        draws=DRAWS,
        refit_tol=REFIT_TOL,
        long_alpha=chosen.long.alpha,
        choice=chosen.choice,
        accuracies=table(["columns", *map(str, widths)], rows_of(*by_columns(measured), names)),
        paper=table(["paper, features", *map(str, BUDGETS)], [[n, *v] for n, v in PAPER.items()]),
    )


def main() -> None:
    """Choose settings on the development rows, measure the splits and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--long", type=int, default=1, help="splits that continue to 500 columns")
    options = parser.parse_args()
    data = load(options.data)
    with thread_limit(1):
        development, split_rows = splits(len(data.y), options.seeds)
        development = development[:CHOOSING]
        choice, tried = choose(data, development, CHOSEN_ON)
        print(choice, *tried, sep="\n", flush=True)
        kinds = ("Nystroem", "RBFSampler")
        every = (*WIDTHS, *LONG_WIDTHS) if options.long else WIDTHS
        maps = {
            name: {width: choose_map(data, name, development, width) for width in every}
            for name in kinds
        }
        print(maps, flush=True)
        long = choose_long(data, development, choice, max(every)) if options.long else choice
        print(long, flush=True)
        chosen = Chosen(choice, long, tried, maps)
    measured = kept(options.out, chosen)
    there = {(point.name, point.width, point.seed) for point in measured}
    for seed, split in enumerate(split_rows):
        widths = (*WIDTHS, *LONG_WIDTHS) if seed < options.long else WIDTHS
        measured += measure_maps(data, split, maps, widths, seed)
    tasks = [
        (name, widths, seed)
        for widths, last in ((LONG_WIDTHS, options.long), (WIDTHS, options.seeds))
        for seed in range(last)
        for name in PAPER
        if not there & {(name, width, seed) for width in widths}
    ]
    write(options, data, len(development), chosen, measured)
    with worker_processes(options.jobs) as workers:
        running = [
            workers.submit(
                measure_path,
                data,
                split_rows[seed],
                name,
                long if widths == LONG_WIDTHS else choice,
                widths,
                seed,
            )
            for name, widths, seed in tasks
        ]
        # The page is written whenever something is added: a run that is stopped leaves its part.
        for future in as_completed(running):
            measured += future.result()
            write(options, data, len(development), chosen, measured)


if __name__ == "__main__":
    main()
