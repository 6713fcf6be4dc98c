"""Few Fourier features of endlessly many kernels against a support vector machine.

Figures 3 and 4 of A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many
features", Machine Learning 91, 2013; against infinite kernel learning as there, a decomposition
with side information (CSI), and scikit-learn's SVC with one Gaussian kernel.

    python -m scripts.reproduce.support_vectors --data DIR --set spambase
    python -m scripts.reproduce.support_vectors --data DIR --set adult

Machines that are in the raw runs beside the page are not trained again; with another --out all are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC

from scripts.reproduce import adult, spambase
from scripts.reproduce.kernel_machines import infinite_kernels, side_information
from scripts.reproduce.moved_draws import Tuning, tune
from scripts.reproduce.results import (
    arguments,
    commit,
    keep_runs,
    kept_runs,
    pyplot,
    spread,
    stopwatch,
    table,
    write_page,
)
from visionshare import GroupFeatureClassifier, RandomFourier
from visionshare.generators.draws import Draws
from visionshare.machine.resources import thread_limit
from visionshare.store import DrawnColumns

RANGES = ((1.0, 20.0), (2.0, 40.0), (5.0, 100.0), (10.0, 200.0), (20.0, 400.0))
FRACTIONS = (2e-3, 2e-2, 1e-1, 3e-1)
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMAS = (0.0001, 0.0005, 0.002, 0.01, 0.05, 0.2)
DRAWS, ROUNDS, PATIENCE = 60, 80, 3
# Pairs that are drawn once, and how they are tuned: σ, epochs, rate, label smoothing.
PAIRS = 40
SIGMAS, EPOCHS, RATES = (2.0, 5.0, 15.0, 50.0, 150.0), (7, 20, 60, 180), (0.001, 0.003, 0.01, 0.03)
TUNINGS = tuple(itertools.product(SIGMAS, EPOCHS, RATES, (0.0, 0.2)))
# Columns of CSI, as many as the tuned pairs have.
RANK, RIDGES = 2 * PAIRS, (1e-2, 1.0)
CHOSEN_ON, FOLDS = 1000, 2
ADULT_ROWS, ADULT_TRAINING, SPAM_TRAINING = 10_000, 7000, 3065
SIZES = (100, 300, 1000)
# Constants of --quick.
QUICK = {
    "RANGES": RANGES[1:3], "FRACTIONS": FRACTIONS[1:3], "COSTS": COSTS[1:3], "GAMMAS": GAMMAS[2:4],
    "TUNINGS": TUNINGS[:2], "ROUNDS": 20, "CHOSEN_ON": 300, "ADULT_ROWS": 2000, "SIZES": SIZES[:2],
    "ADULT_TRAINING": 600, "SPAM_TRAINING": 600,
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A set of examples.

    ``inputs(kind, train)`` returns the inputs of all of them, scaled as the training rows say;
    a split is a name, training rows and test rows.
    """

    title: str
    y: np.ndarray
    kinds: tuple[str, ...]
    inputs: Callable[[str, np.ndarray], np.ndarray]
    splits: list[tuple[str, np.ndarray, np.ndarray]]
    sizes: tuple[int, ...]


def spam_task(data: Path, seeds: int) -> Task:
    """Return spambase: the published split and random ones."""
    X, y, part = spambase.load(data)
    return Task(
        "Spambase",
        y,
        spambase.INPUTS,
        lambda kind, train: spambase.scaled(X, train, kind),
        spambase.splits(part, seeds),
        (*SIZES, SPAM_TRAINING),
    )


def adult_task(data: Path, seeds: int) -> Task:
    """Return Adult: other rows in each split, as many as the paper's."""
    people = adult.load(data)
    everyone = np.arange(len(people.y))
    parts = []
    for seed in range(seeds):
        rows = np.random.default_rng(seed).permutation(everyone)[:ADULT_ROWS]
        parts.append((f"seed {seed}", rows[:ADULT_TRAINING], rows[ADULT_TRAINING:]))
    return Task(
        "Adult",
        people.y,
        adult.INPUTS,
        lambda kind, train: people.table(kind, train, everyone),
        parts,
        tuple(n for n in (*SIZES, 3000, ADULT_TRAINING) if n <= ADULT_TRAINING),
    )


TASKS: dict[str, Callable[[Path, int], Task]] = {"spambase": spam_task, "adult": adult_task}


@dataclass(frozen=True)
class Outcome:
    """What one machine did on one split."""

    accuracy: float
    training: float
    prediction: float
    size: int


# Labels of inputs, and how many features or support vectors they take.
Fitted = tuple[Callable[[np.ndarray], np.ndarray], int]


def grfl(X: np.ndarray, y: np.ndarray, how: Any) -> Fitted:
    """Train GrFL: pairs of σ drawn between two bandwidths."""
    bandwidths, fraction = how
    family = RandomFourier(bandwidths=bandwidths, between=True, scaling="none").fit(X)
    draws = Draws(family, n=DRAWS, rounds=(PATIENCE + 1) * ROUNDS, random_state=0)
    model = GroupFeatureClassifier(
        alpha=fraction * np.sqrt(len(X)),
        search="sampled",
        rounds=ROUNDS,
        patience=PATIENCE,
        refit_tol=0.01,
        max_iter=50,
    ).fit(DrawnColumns(draws, X), y)
    size = len(model.support_)
    if not size:
        return lambda Z: np.full(len(Z), model.intercept_[0] > 0), 0
    chosen = draws.take(model.support_)
    return lambda Z: chosen.transform(Z) @ model.coef_[0] + model.intercept_[0] > 0, size


def tuned(X: np.ndarray, y: np.ndarray, how: Any) -> Fitted:
    """Train pairs that are drawn once and move with the weights."""
    sigma, epochs, rate, smoothing = how
    drawn = RandomFourier(PAIRS, bandwidths=(sigma,), scaling="none", random_state=0).fit(X)
    tuning, batch = Tuning(epochs, rate, smoothing), min(64, len(X))
    return tune(drawn, X, y, tuning, 0, batch).predict, 2 * PAIRS


def svc(X: np.ndarray, y: np.ndarray, how: Any) -> Fitted:
    """Train a support vector machine."""
    cost, gamma = how
    model = SVC(C=cost, gamma=gamma).fit(X, y)
    return model.predict, int(model.n_support_.sum())


def csi(X: np.ndarray, y: np.ndarray, how: Any) -> Fitted:
    """Train ridge regression on a low-rank decomposition that heeds the labels."""
    model = side_information(X, 2.0 * y - 1, RANK, *how)
    return lambda Z: model.scores(Z) > 0, model.size


def infinite(X: np.ndarray, y: np.ndarray, how: Any) -> Fitted:
    """Train infinite kernel learning between the ends of the grid of γ."""
    (cost,) = how
    model = infinite_kernels(X, 2.0 * y - 1, cost, (GAMMAS[0], GAMMAS[-1]))
    return lambda Z: model.scores(Z) > 0, model.size


def outcome(
    name: str, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, how: Any
) -> Outcome:
    """Train and evaluate one of MACHINES."""
    with stopwatch() as training:
        predict, size = MACHINES[name][0](X[train], y[train], how)
    # Compiled before anything is timed.
    predict(X[test[:2]])
    with stopwatch() as prediction:
        labels = predict(X[test])
    return Outcome(np.mean(labels == y[test]), training[0], prediction[0], size)


MACHINES: dict[str, tuple[Callable[[np.ndarray, np.ndarray, Any], Fitted], tuple[Any, ...]]] = {
    "GrFL": (grfl, tuple(itertools.product(RANGES, FRACTIONS))),
    "drawn and tuned": (tuned, TUNINGS),
    "SVC": (svc, tuple(itertools.product(COSTS, GAMMAS))),
    "CSI": (csi, tuple(itertools.product(GAMMAS, RIDGES))),
    "infinite kernels": (infinite, tuple(zip(COSTS, strict=True))),
}

# Their matrices grow with the square of the examples, or their steps with the rank.
MOST_EXAMPLES = {"CSI": 1000, "infinite kernels": 1000}

Measured = dict[tuple[str, int], list[Outcome]]


def choose(name: str, task: Task, train: np.ndarray) -> tuple[str, Any]:
    """Return the inputs and settings of the best accuracy in cross-validation."""
    scores: dict[tuple[str, Any], float] = {}
    parts = np.array_split(train[:CHOSEN_ON], FOLDS)
    for kind, fold in itertools.product(task.kinds, range(FOLDS)):
        learned = np.concatenate([p for i, p in enumerate(parts) if i != fold])
        X = task.inputs(kind, learned)
        for how in MACHINES[name][1]:
            accuracy = outcome(name, X, task.y, learned, parts[fold], how).accuracy
            scores[kind, how] = scores.get((kind, how), 0.0) + accuracy
    return max(scores.items(), key=itemgetter(1))[0]


def kept(out: Path, name: str) -> tuple[Measured, list[list[Any]]]:
    """Return the outcomes and settings of the raw runs beside the page, empty without any."""
    runs = kept_runs(out, name) or {"outcomes": {}, "chosen": []}
    measured: Measured = {}
    for key, found in runs["outcomes"].items():
        machine, size = key.split(" | ")
        measured[machine, int(size)] = [Outcome(**one) for one in found]
    return measured, runs["chosen"]


def measure(
    task: Task, measured: Measured, chosen: list[list[Any]]
) -> Iterator[tuple[Measured, list[list[Any]]]]:
    """Yield, after each split, outcomes of all machines at every size and the settings chosen.

    Machines whose settings were chosen on a split before are not trained on it again.
    """
    done = {(label, name) for label, name, *_ in chosen}
    for label, train, test in task.splits:
        for name in MACHINES:
            if (label, name) in done:
                continue
            kind, how = choose(name, task, train)
            chosen.append([label, name, kind, how, commit()])
            for size in sizes_of(task, name):
                rows = train[:size]
                found = outcome(name, task.inputs(kind, rows), task.y, rows, test, how)
                measured.setdefault((name, size), []).append(found)
                print(label, name, kind, how, size, found, flush=True)
            yield measured, chosen


def sizes_of(task: Task, name: str) -> list[int]:
    """Return the numbers of examples that a machine is trained on."""
    return [size for size in task.sizes if size <= MOST_EXAMPLES.get(name, size)]


def draw(measured: Measured, task: Task, path: Path) -> None:
    """Draw accuracy, seconds and size against the number of training examples."""
    plt = pyplot()

    labels = {
        "accuracy": "accuracy",
        "training": "training, seconds",
        "prediction": "prediction, seconds",
        "size": "features or support vectors",
    }
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.5), constrained_layout=True)
    for axis, (field, label) in zip(axes, labels.items(), strict=True):
        for name in dict.fromkeys(name for name, _ in measured):
            sizes = sizes_of(task, name)
            means = [np.mean([getattr(o, field) for o in measured[name, n]]) for n in sizes]
            axis.plot(sizes, means, "o-", label=name)
        axis.set(xscale="log", xlabel="training examples", ylabel=label)
        if field != "accuracy":
            axis.set_yscale("log")
    axes[0].legend()
    figure.savefig(path, dpi=80)


def main() -> None:
    """Measure all machines on all splits and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=sorted(TASKS), required=True, help="of examples")
    options = parser.parse_args()
    task = TASKS[options.set](options.data, options.seeds)
    with thread_limit(options.jobs):
        for measured, chosen in measure(task, *kept(options.out, f"support_vectors-{options.set}")):
            write(options, task, measured, chosen)


def write(options: Any, task: Task, measured: Measured, chosen: list[list[Any]]) -> None:
    """Write page and picture of the splits that are complete."""
    name = f"support_vectors-{options.set}"
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, task, options.out / f"{name}.png")
    rows = [
        [
            n,
            machine,
            spread([100 * o.accuracy for o in measured[machine, n]]),
            spread([o.training for o in measured[machine, n]]),
            spread([1000 * o.prediction for o in measured[machine, n]], 1),
            spread([o.size for o in measured[machine, n]], 0),
        ]
        for n in sorted({task.sizes[0], CHOSEN_ON, task.sizes[-1]})
        for machine in MACHINES
        if (machine, n) in measured
    ]
    header = ["training examples", "machine", "accuracy", "training, s", "prediction, ms", "size"]
    keep_runs(options.out, name, {"outcomes": measured, "chosen": chosen})
    _, train, test = task.splits[0]
    write_page(
        options.out,
        "support_vectors",
        name,
        title=task.title,
        name=name,
        n_train=len(train),
        n_test=len(test),
        splits=", ".join(label for label, *_ in task.splits),
        folds=FOLDS,
        chosen_on=CHOSEN_ON,
        draws=DRAWS,
        rounds=ROUNDS,
        pairs=PAIRS,
        jobs=options.jobs,
        commits=", ".join(dict.fromkeys(row[-1] for row in chosen)),
        rank=RANK,
        accuracies=table(header, rows),
    )


if __name__ == "__main__":
    main()
