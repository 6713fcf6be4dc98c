"""Few Fourier features of endlessly many kernels against a support vector machine, on spambase.

Figures 3 and 4 of A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many
features", Machine Learning 91, 2013; there against infinite kernel learning, here against
scikit-learn's SVC with one Gaussian kernel.

    python -m scripts.reproduce.spambase --data DIR
"""

from __future__ import annotations

import gzip
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from scripts.reproduce.results import arguments, keep_runs, pyplot, spread, table, write_page
from visionshare import GroupFeatureClassifier, RandomFourier
from visionshare.generators.draws import Draws
from visionshare.resources import thread_limit
from visionshare.store import DrawnColumns

INPUTS = ("raw", "log(1 + x)")
RANGES = ((2.0, 40.0), (5.0, 100.0), (10.0, 200.0))
FRACTIONS = (2e-3, 2e-2, 1e-1)
COSTS = (0.1, 1.0, 10.0, 100.0)
GAMMAS = (0.0005, 0.002, 0.01, 0.05)
SIZES = (100, 300, 1000, 3065)
DRAWS, ROUNDS, PATIENCE = 60, 80, 3
CHOSEN_ON, FOLDS = 1000, 2


@dataclass(frozen=True)
class Outcome:
    """What one machine did on one split."""

    accuracy: float
    training: float
    prediction: float
    size: int


def load(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, classes and the file of the published split (1 tests)."""
    folder = data / "uci" / "spambase"
    with gzip.open(folder / "spambase.data.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",")
    with gzip.open(folder / "spam.traintest.gz", "rt") as file:
        part = np.loadtxt(file).astype(int).ravel()
    return rows[:, :-1], rows[:, -1].astype(int), part


def scaled(X: np.ndarray, train: np.ndarray, kind: str) -> np.ndarray:
    """Return all inputs, transformed, of mean 0 and variance 1 on the training rows."""
    X = np.log1p(X) if kind == INPUTS[1] else X
    return StandardScaler().fit(X[train]).transform(X).astype(np.float32)


def grfl(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, how: Any) -> Outcome:
    """Train and evaluate GrFL: pairs of σ drawn between two bandwidths."""
    bandwidths, fraction = how
    begun = time.perf_counter()
    family = RandomFourier(bandwidths=bandwidths, between=True, scaling="none").fit(X[train])
    draws = Draws(family, n=DRAWS, rounds=(PATIENCE + 1) * ROUNDS, random_state=0)
    model = GroupFeatureClassifier(
        alpha=fraction * np.sqrt(len(train)),
        search="sampled",
        rounds=ROUNDS,
        patience=PATIENCE,
        refit_tol=0.01,
        max_iter=50,
    ).fit(DrawnColumns(draws, X[train]), y[train])
    trained = time.perf_counter() - begun
    if len(model.support_) == 0:
        return Outcome(max(np.mean(y[test]), 1 - np.mean(y[test])), trained, 0.0, 0)
    chosen = draws.take(model.support_)
    chosen.transform(X[test[:2]])
    begun = time.perf_counter()
    scores = chosen.transform(X[test]) @ model.coef_[0] + model.intercept_[0]
    seconds = time.perf_counter() - begun
    return Outcome(np.mean((scores > 0) == y[test]), trained, seconds, len(model.support_))


def svc(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, how: Any) -> Outcome:
    """Train and evaluate a support vector machine."""
    cost, gamma = how
    begun = time.perf_counter()
    model = SVC(C=cost, gamma=gamma).fit(X[train], y[train])
    trained = time.perf_counter() - begun
    begun = time.perf_counter()
    labels = model.predict(X[test])
    seconds = time.perf_counter() - begun
    return Outcome(np.mean(labels == y[test]), trained, seconds, int(model.n_support_.sum()))


MACHINES = {
    "GrFL": (grfl, tuple(itertools.product(RANGES, FRACTIONS))),
    "SVC": (svc, tuple(itertools.product(COSTS, GAMMAS))),
}


def choose(name: str, raw: np.ndarray, y: np.ndarray, train: np.ndarray) -> tuple[str, Any]:
    """Return the inputs and settings of the best accuracy in cross-validation."""
    machine, settings = MACHINES[name]
    scores: dict[tuple[str, Any], float] = {}
    parts = np.array_split(train[:CHOSEN_ON], FOLDS)
    for kind, fold in itertools.product(INPUTS, range(FOLDS)):
        learned = np.concatenate([p for i, p in enumerate(parts) if i != fold])
        X = scaled(raw, learned, kind)
        for how in settings:
            accuracy = machine(X, y, learned, parts[fold], how).accuracy
            scores[kind, how] = scores.get((kind, how), 0.0) + accuracy
    return max(scores, key=lambda key: scores[key])


def splits(part: np.ndarray, n: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return the published split and random ones of the same sizes, training rows mixed."""
    published = np.random.default_rng(0).permutation(np.flatnonzero(part == 0))
    parts = [("published", published, np.flatnonzero(part == 1))]
    for seed in range(n - 1):
        order = np.random.default_rng(seed).permutation(len(part))
        parts.append((f"seed {seed}", order[: len(published)], order[len(published) :]))
    return parts


def measure(
    raw: np.ndarray, y: np.ndarray, part: np.ndarray, seeds: int
) -> Iterator[tuple[dict[tuple[str, int], list[Outcome]], list[list[Any]]]]:
    """Yield, after each split, outcomes of both machines at every size and the settings chosen."""
    measured: dict[tuple[str, int], list[Outcome]] = {}
    chosen: list[list[Any]] = []
    for label, train, test in splits(part, seeds):
        for name, (machine, _) in MACHINES.items():
            kind, how = choose(name, raw, y, train)
            chosen.append([label, name, kind, how])
            for size in SIZES:
                rows = train[:size]
                outcome = machine(scaled(raw, rows, kind), y, rows, test, how)
                measured.setdefault((name, size), []).append(outcome)
                print(label, name, kind, how, size, outcome, flush=True)
        yield measured, chosen


def draw(measured: dict[tuple[str, int], list[Outcome]], path: Path) -> None:
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
        for name in MACHINES:
            means = [np.mean([getattr(o, field) for o in measured[name, n]]) for n in SIZES]
            axis.plot(SIZES, means, "o-", label=name)
        axis.set(xscale="log", xlabel="training examples", ylabel=label)
        if field != "accuracy":
            axis.set_yscale("log")
    axes[0].legend()
    figure.savefig(path, dpi=80)


def main() -> None:
    """Measure both machines on all splits and write the page."""
    options = arguments(__doc__).parse_args()
    raw, y, part = load(options.data)
    with thread_limit(options.jobs):
        for measured, chosen in measure(raw, y, part, 1 if options.quick else options.seeds):
            write(options, part, measured, chosen)


def write(
    options: Any,
    part: np.ndarray,
    measured: dict[tuple[str, int], list[Outcome]],
    chosen: list[list[Any]],
) -> None:
    """Write page and picture of the splits that are complete."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw(measured, options.out / "spambase.png")
    rows = [
        [
            n,
            name,
            spread([100 * o.accuracy for o in measured[name, n]]),
            spread([o.training for o in measured[name, n]]),
            spread([1000 * o.prediction for o in measured[name, n]], 1),
            spread([o.size for o in measured[name, n]], 0),
        ]
        for n in SIZES
        for name in MACHINES
    ]
    header = ["training examples", "machine", "accuracy", "training, s", "prediction, ms", "size"]
    choices = ["split", "machine", "inputs", "bandwidths and λ/√m, or C and γ"]
    keep_runs(options.out, "spambase", {"outcomes": measured, "chosen": chosen})
    write_page(
        options.out,
        "spambase",
        n_train=np.sum(part == 0),
        n_test=np.sum(part == 1),
        n_random=len(chosen) // len(MACHINES) - 1,
        folds=FOLDS,
        chosen_on=CHOSEN_ON,
        draws=DRAWS,
        rounds=ROUNDS,
        jobs=options.jobs,
        accuracies=table(header, rows),
        chosen=table(choices, chosen),
    )


if __name__ == "__main__":
    main()
