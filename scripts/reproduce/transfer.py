"""GreedyTL against its competitors, leave-one-class-out, and its seconds.

Figures 1, 2 and 4 and table 1 of I. Kuzborskij, F. Orabona, B. Caputo, "Scalable greedy
algorithms for transfer learning", Computer Vision and Image Understanding 156, 2017, on data sets
that can be had: letters, textures, and characters in fonts.

    python -m scripts.reproduce.transfer --data DIR
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from scripts.reproduce.results import (
    arguments,
    deviation,
    keep_runs,
    pyplot,
    spread,
    table,
    write_page,
)
from scripts.reproduce.transfer_methods import METHODS, Few, few_of, scaling
from scripts.reproduce.transfer_times import table_of_fits, table_of_steps, times
from scripts.reproduce.uci import load
from visionshare.datasets.sampling import sample_one_class
from visionshare.machine.resources import thread_limit

POSITIVES, NEGATIVES = (2, 5, 10), 10
NOISE = (0, 10, 100, 1000)
TESTS = 50
DRAWS = 10
MOST_ROWS = 2000
BEST = "best source (of the test)"
FONTS = "chars74k"


@dataclass(frozen=True)
class Setting:
    """A data set, and how many of its classes are learned without and with noise dimensions."""

    name: str
    every: int
    every_noisy: int
    noise: tuple[int, ...]


SETTINGS = (
    Setting("texture", 1, 2, NOISE),
    Setting("letter", 1, 3, NOISE),
    Setting(FONTS, 2, 2, (0,)),
)
# Constants of --quick.
QUICK = {"SETTINGS": (Setting("texture", 12, 12, (0, 10)),), "SIZES": (100, 1899)}


@dataclass
class Outcome:
    """Balanced accuracies by method, positives and noise, one list entry per class and draw."""

    accuracy: dict[tuple[str, int, int], list[float]] = field(default_factory=dict)
    per_draw: dict[tuple[str, int, int], dict[int, list[float]]] = field(default_factory=dict)
    weights: dict[int, np.ndarray] = field(default_factory=dict)
    chosen: dict[int, list[float]] = field(default_factory=dict)
    shape: tuple[int, ...] = ()

    def note(self, method: str, positives: int, noise: int, draw: int, value: float) -> None:
        """Keep one balanced accuracy."""
        key = method, positives, noise
        self.accuracy.setdefault(key, []).append(value)
        self.per_draw.setdefault(key, {}).setdefault(draw, []).append(value)


def read(data: Path, name: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return inputs, classes and their names."""
    if name == FONTS:
        arrays = np.load(data / "chars74k" / "englishfnt_34_gray28.npz")
        numbers, y = np.unique(arrays["sample"], return_inverse=True)
        letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        X = arrays["images"].reshape(len(y), -1).astype(np.float64)
        return X, y, [letters[n - 1] for n in numbers]
    X, y, _ = load(data, name)
    k = int(y.max()) + 1
    names = [chr(65 + c) for c in range(k)] if name == "letter" else [str(c) for c in range(k)]
    return X, y, names


def sources_of(
    X: np.ndarray, y: np.ndarray, target: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the other classes, and weights and intercepts of each against the rest of them.

    No example of the target is seen; at most 2000 examples per source, a third of its class.
    """
    others = np.array([c for c in np.unique(y) if c != target])
    weights, starts = [], []
    for c in others:
        positive, rest = np.flatnonzero(y == c), np.flatnonzero((y != c) & (y != target))
        rows = np.concatenate(
            [
                rng.permutation(positive)[: MOST_ROWS // 3],
                rng.permutation(rest)[: 2 * MOST_ROWS // 3],
            ]
        )
        model = LogisticRegression(C=1.0, max_iter=100, tol=1e-2, class_weight="balanced")
        model.fit(X[rows], y[rows] == c)
        weights.append(model.coef_[0])
        starts.append(model.intercept_[0])
    return others, np.array(weights), np.array(starts)


def balanced_accuracy(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean over both classes of the examples that are right, in percent."""
    right = (scores > 0) == truth
    return 50 * float(right[truth].mean() + right[~truth].mean())


def cell(
    X: np.ndarray,
    H: np.ndarray,
    rows: tuple[np.ndarray, np.ndarray],
    noise: int,
    seed: list[int],
    methods: Mapping[str, Callable[[Few], Any]] = METHODS,
) -> Iterator[tuple[str, float, np.ndarray]]:
    """Yield method, balanced accuracy and weights of one draw; noise joins the features."""
    few, tests = rows
    m, positives = len(few), len(few) - NEGATIVES
    more = np.random.default_rng(seed).normal(size=(m + len(tests), noise))
    Z = np.hstack([X[np.concatenate(rows)], more, H[np.concatenate(rows)]])
    y = np.where(np.arange(m) < positives, 1.0, -1.0)
    truth = np.arange(len(tests)) < TESTS
    standardized = few_of(Z[:m], y, X.shape[1] + noise)
    offset, scale = scaling(Z[:m])
    tested = (Z[m:] - offset) * scale
    for name, method in methods.items():
        w = method(standardized)
        # What is not linear is a function of standardized examples.
        scores, w = (w(tested), np.empty(0)) if callable(w) else (tested @ w, w)
        yield name, balanced_accuracy(scores, truth), w
    sources = [balanced_accuracy(column, truth) for column in H[tests].T]
    yield BEST, max(sources), np.empty(0)


def run(data: Path, setting: Setting, draws: int, every: int) -> tuple[Outcome, list[str]]:
    """Return the outcomes on one data set, and the names of its classes."""
    X, y, names = read(data, setting.name)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = order[: len(y) // 2], order[len(y) // 2 :]
    offset, scale = scaling(X[first])
    X = (X - offset) * scale
    measured = Outcome(shape=X.shape)
    targets = range(0, len(names), setting.every * every)
    for target in targets:
        rng = np.random.default_rng([0, target])
        others, weights, starts = sources_of(X[first], y[first], target, rng)
        features, H = X[second], X[second] @ weights.T + starts
        for positives, draw in itertools.product(POSITIVES, range(draws)):
            seed = [1, target, positives, draw]
            rows = drawn(y[second], target, positives, np.random.default_rng(seed))
            for noise in setting.noise if target % (setting.every_noisy * every) == 0 else (0,):
                for name, value, w in cell(features, H, rows, noise, [2, *seed[1:]]):
                    measured.note(name, positives, noise, draw, value)
                    if name == "GreedyTL" and noise == 0:
                        _keep(measured, positives, target, others, w, X.shape[1], len(names), draws)
        print(setting.name, names[target], flush=True)
    return measured, names


def drawn(
    y: np.ndarray, target: int, positives: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the examples that train, positives first, and as many of both kinds that test."""
    few = sample_one_class(y, target, positives, NEGATIVES, rng)
    rest = np.setdiff1d(np.arange(len(y)), few)
    return few, rest[sample_one_class(y[rest], target, TESTS, TESTS, rng)]


def _keep(
    measured: Outcome, positives: int, target: int, others: np.ndarray, w: np.ndarray, d: int,
    k: int, draws: int,
) -> None:  # fmt: skip
    """Add a draw's weights of the sources to the mean matrix, and count what it chose."""
    if positives not in measured.weights:
        measured.weights[positives] = np.full((k, k), np.nan)
    row = measured.weights[positives][target]
    row[others] = np.where(np.isnan(row[others]), 0, row[others]) + w[d:] / draws
    chosen = np.flatnonzero(w)
    measured.chosen.setdefault(positives, []).append(float(np.sum(chosen >= d)))


def accuracies(measured: Mapping[str, Outcome], methods: Iterable[str] = METHODS) -> str:
    """Return tables of the fewest and the most positives: a method a row, a data set a column."""
    tables = []
    for positives in (POSITIVES[0], POSITIVES[-1]):
        rows = [
            [name, *(_cell(outcome, (name, positives, 0)) for outcome in measured.values())]
            for name in (*methods, BEST)
        ]
        tables.append(table([f"{positives} + {NEGATIVES}", *measured], rows))
    return "\n\n".join(tables)


def _cell(measured: Outcome, key: tuple[str, int, int]) -> str:
    """Return the mean over classes and draws ± the standard deviation of the draws' means."""
    if key not in measured.accuracy:
        return "–"
    return spread(_draw_means(measured, key), 1)


def _draw_means(measured: Outcome, key: tuple[str, int, int]) -> list[float]:
    """Return the mean over classes of each draw."""
    return [float(np.mean(values)) for values in measured.per_draw[key].values()]


def draw_accuracy(
    measured: dict[str, Outcome], path: Path, methods: Iterable[str] = METHODS
) -> None:
    """Draw accuracy against positives, and against noise dimensions, one row per data set."""
    plt = pyplot()
    shown = (*methods, BEST)
    figure, axes = plt.subplots(
        len(measured), 4, figsize=(15, 3.6 * len(measured)), constrained_layout=True, squeeze=False
    )
    for row, (name, outcome) in zip(axes, measured.items(), strict=True):
        for number, method in enumerate(shown):
            style: dict[str, Any] = (
                {"lw": 2.2} if method.startswith("GreedyTL") else {"lw": 1.0, "ls": "--"}
            )
            color = "black" if method == BEST else plt.get_cmap("tab20")(number)
            style |= {"color": color}
            draws = [_draw_means(outcome, (method, p, 0)) for p in POSITIVES]
            means = [float(np.mean(values)) for values in draws]
            errors = [deviation(values) for values in draws]
            row[0].errorbar(
                POSITIVES, means, errors, marker="o", ms=4, capsize=2, label=method, **style
            )
            for axis, p in zip(row[1:], POSITIVES, strict=True):
                known = _same_classes(outcome, method, p)
                values = [np.mean(outcome.accuracy[method, p, n]) for n in known]
                axis.plot(known, values, "o", ms=4, **{"ls": "-", **style})
                axis.set(title=f"{name}, {p} + {NEGATIVES}", xlabel="noise dimensions")
                axis.set_xscale("symlog", linthresh=10)
                axis.set_visible(len(known) > 1)
        row[0].set(title=name, xlabel="positives", ylabel="balanced accuracy (%)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=80)


def _same_classes(outcome: Outcome, method: str, positives: int) -> list[int]:
    """Return the numbers of noise dimensions with which the same classes were learned."""
    known = [n for n in NOISE if (method, positives, n) in outcome.accuracy]
    counts = [len(outcome.accuracy[method, positives, n]) for n in known]
    return [n for n, count in zip(known, counts, strict=True) if count == counts[-1]]


def matrix_figure(weights: np.ndarray, targets: list[str], sources: list[str], title: str) -> Any:
    """Return a figure: columns are targets, rows sources, as in the paper's figure 4.

    Red lowers the score, blue raises it; gray: excluded.
    """
    matrix = np.asarray(weights, np.float64).T
    n, k = matrix.shape
    plt = pyplot()
    size = (min(16.0, 2.6 + 0.28 * k), min(16.0, 1.6 + 0.28 * n))
    figure = plt.figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    colors = plt.get_cmap("RdBu").with_extremes(bad="0.8")
    reach = float(np.nanmax(np.abs(matrix))) or 1.0
    shown = axis.imshow(np.ma.masked_invalid(matrix), cmap=colors, vmin=-reach, vmax=reach)
    letters = 8 if max(n, k) <= 40 else 5
    axis.set_xticks(
        range(k), targets, size=letters, rotation=90 if k > 12 or max(map(len, targets)) > 3 else 0
    )
    axis.set_yticks(range(n), sources, size=letters)
    axis.set(xlabel="class that is learned", ylabel="source", title=title)
    figure.colorbar(shown, ax=axis, label="weight", shrink=0.8)
    return figure


def draw_matrices(
    out: Path, measured: dict[str, Outcome], names: dict[str, list[str]]
) -> list[str]:
    """Write the transferability matrices of 10 positives; return the page's lines."""
    lines = []
    for name, outcome in measured.items():
        weights = outcome.weights[POSITIVES[-1]]
        learned = np.flatnonzero(np.isfinite(weights).any(axis=1))
        labels = [names[name][c] for c in learned]
        title = f"{name}, {POSITIVES[-1]} + {NEGATIVES}"
        figure = matrix_figure(weights[learned], labels, names[name], title)
        figure.savefig(out / f"transfer-{name}.png", dpi=70)
        lines.append(f"![weights of the sources, {name}](transfer-{name}.png)")
    return lines


def main() -> None:
    """Measure the seconds, then the accuracies; write the page after each data set."""
    parser = arguments(__doc__)
    parser.set_defaults(seeds=DRAWS)
    parser.add_argument("--every", type=int, default=1, help="learn every so-many-th class alone")
    options = parser.parse_args()
    draws = options.seeds
    options.out.mkdir(parents=True, exist_ok=True)
    measured: dict[str, Outcome] = {}
    names: dict[str, list[str]] = {}
    with thread_limit(options.jobs):
        seconds = times(options.quick)
        for setting in SETTINGS:
            measured[setting.name], names[setting.name] = run(
                options.data, setting, draws, options.every
            )
            write(options.out, measured, names, seconds, draws)


def write(
    out: Path,
    measured: dict[str, Outcome],
    names: dict[str, list[str]],
    seconds: dict[str, Any],
    draws: int,
) -> None:
    """Write page and pictures of the data sets that are complete."""
    draw_accuracy(measured, out / "transfer.png")
    keep_runs(out, "transfer", {"measured": measured, "seconds": seconds})
    write_page(
        out,
        "transfer",
        most_rows=MOST_ROWS,
        tests=TESTS,
        draws=draws,
        accuracies=accuracies(measured),
        data_sets=data_sets(measured, names, draws),
        matrices="\n\n".join(draw_matrices(out, measured, names)),
        rounds=seconds["rounds"],
        runs=seconds["runs"],
        seconds=table_of_steps(seconds["steps"]),
        headline=table_of_fits(seconds["fits"]),
    )


def data_sets(measured: dict[str, Outcome], names: dict[str, list[str]], draws: int) -> str:
    """Return the table of the data sets."""
    header = ["set", "features", "sources", "classes learned", "sources chosen"]
    rows = [
        [
            name, outcome.shape[1], len(names[name]) - 1, _learned(outcome, 0, draws),
            ", ".join(f"{np.mean(outcome.chosen[p]):.1f}" for p in POSITIVES),
        ]
        for name, outcome in measured.items()
    ]  # fmt: skip
    return table(header, rows)


def _learned(outcome: Outcome, noise: int, draws: int) -> int:
    """Return how many classes were learned in turn."""
    return len(outcome.accuracy["GreedyTL", POSITIVES[0], noise]) // draws


if __name__ == "__main__":
    main()
