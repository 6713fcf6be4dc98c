"""MNIST with kernel hypotheses: structured penalties beside ℓ1, and two boosters to convergence.

The setting of Fig. 7 and 8 of J. Duchi, Y. Singer, "Boosting with structural sparsity", ICML 2009:
hypotheses exp(−‖x − z‖²/2) around the examples on which one pass of a multiclass kernel perceptron
errs, multinomial loss. The paper does not say how long its images are: here as long as the number
of mistakes asks for. LandSat's products stand beside them in the comparison of the boosters.

    python -m scripts.reproduce.kernel_hypotheses --data DIR
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.boosting_curves import (
    ENTERING,
    ROUNDS,
    SWEEPS,
    Race,
    described,
    draw_races,
    kept_race,
    landsat_race,
    mnist_race,
)
from scripts.reproduce.coverage import coverage
from scripts.reproduce.results import (
    arguments,
    commit,
    deviation,
    keep_runs,
    plain,
    pyplot,
    spread,
    table,
    write_page,
)
from visionshare import StructuralBoostingClassifier
from visionshare.columns import ArrayColumns
from visionshare.datasets.readers.idx import read_idx
from visionshare.files.durable import write_text
from visionshare.learners import regularization_path
from visionshare.machine.resources import thread_limit

CLASSES, VALIDATION, BLOCK = 10, 5000, 500
LENGTHS, LENGTH = (1.0, 2.0, 2.5, 3.0), 2.5
SIZES, RACE_SIZE = (30, 100, 300), 100
FRACTIONS = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001, 5e-5, 2e-5)
RIDGES = (1000.0, 100.0, 10.0, 1.0, 0.1, 0.01)
# Training images that show which are hypotheses; None for all.
SEEN: int | None = None
# Constants of --quick.
QUICK = {
    "LENGTHS": (LENGTH,), "SIZES": (30,), "RACE_SIZE": 30, "FRACTIONS": FRACTIONS[:4],
    "RIDGES": RIDGES[:2], "SEEN": 2000, "ROUNDS": 5, "SWEEPS": 20,
}  # fmt: skip
PENALTIES = ("l1", "l1/l2", "l1/linf", "ridge")
# Fractions of λ_max, or ridges, beyond the best that are still tried.
PATIENCE = 2
SETTINGS: dict[str, Any] = {
    "solver": "fista", "calibrate": False, "refit_tol": 2e-3, "max_iter": 300, "n_entering": 50,
}  # fmt: skip

# Kernels (m, n) and classes (m,).
Examples = tuple[np.ndarray, np.ndarray]


class Digits(NamedTuple):
    """Images as rows of length 1, their classes, and those that are hypotheses."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Fitted(NamedTuple):
    """A classifier of a path: how strongly it is penalized, and how it does."""

    strength: float
    validation_error: float
    test_error: float
    test_coverage: float
    features: int
    kkt: float | None


class Chosen(NamedTuple):
    """What validation images chose, for a penalty, a number of examples a class and a seed."""

    penalty: str
    size: int
    seed: int
    best: Fitted
    path: list[Fitted]
    commit: str


def kernel(X: np.ndarray, Z: np.ndarray, length: float) -> np.ndarray:
    """Return exp(−‖x − z‖²/2), (len(X), len(Z)), of rows of length 1 that are made so long."""
    return np.exp(-(length**2) * np.maximum(1 - X @ Z.T, 0))


def mistakes(X: np.ndarray, y: np.ndarray, length: float) -> np.ndarray:
    """Return the examples on which one pass of the kernel perceptron errs, in order.

    A mistake adds the example to its own class and takes it from the one that won.
    """
    chosen: list[int] = []
    weights = np.zeros((0, CLASSES))
    for start in range(0, len(X), BLOCK):
        block = X[start : start + BLOCK]
        before = kernel(block, X[chosen], length) @ weights
        among, added = kernel(block, block, length), np.zeros((0, CLASSES))
        new: list[int] = []
        for i, truth in enumerate(y[start : start + BLOCK]):
            scores = before[i] + among[i, new] @ added
            winner = int(np.argmax(scores))
            if winner != truth or not (chosen or new):
                row = np.zeros((1, CLASSES))
                row[0, truth] += 1
                row[0, winner] -= float(winner != truth)
                added, new = np.vstack([added, row]), [*new, i]
        chosen += [start + i for i in new]
        weights = np.vstack([weights, added])
    return np.array(chosen)


def load(data: Path) -> Digits:
    """Return MNIST's training and test images as rows of length 1, and their classes."""
    parts = []
    for name in ("train", "t10k"):
        images = read_idx(data / "mnist" / f"{name}-images-idx3-ubyte.gz")
        labels = read_idx(data / "mnist" / f"{name}-labels-idx1-ubyte.gz")
        rows = images.reshape(len(images), -1).astype(np.float32)
        parts += [rows / np.linalg.norm(rows, axis=1)[:, None], labels.astype(int)]
    return Digits(*parts)


def norm_path(penalty: str, H: np.ndarray, y: np.ndarray) -> Iterator[tuple[float, Any, float]]:
    """Yield fractions of λ_max, scoring functions and KKT residuals, from the largest λ on."""
    learner = StructuralBoostingClassifier(penalty=penalty, **SETTINGS)
    columns = ArrayColumns(H)
    largest = learner.alpha_max(columns, y)
    alphas = [largest * fraction for fraction in FRACTIONS]
    models = regularization_path(learner, columns, y, alphas=alphas)
    for fraction, model in zip(FRACTIONS, models, strict=True):
        yield fraction, model, model.history_[-1].gap


def ridge_path(H: np.ndarray, y: np.ndarray) -> Iterator[tuple[float, Any, None]]:
    """Yield λ of λ/2‖W‖², classifiers on columns of variance 1, and None, largest λ first."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for alpha in RIDGES:
        regression = LogisticRegression(C=1 / alpha, max_iter=2000, tol=1e-4)
        yield alpha, make_pipeline(StandardScaler(), regression).fit(H, y), None


def scores_of(model: Any, H: np.ndarray) -> np.ndarray:
    """Return the scores of examples whose kernels are given."""
    if hasattr(model, "support_"):
        scores: np.ndarray = H[:, model.support_] @ model.coef_.T + model.intercept_
        return scores
    return np.asarray(model.decision_function(H))


def chosen(
    penalty: str, train: Examples, validation: Examples, test: Examples, at: tuple[int, int]
) -> Chosen:
    """Return the classifier of a path that errs least on the validation images.

    A path ends when ``PATIENCE`` weaker penalties in a row are no better.
    """
    steps: Iterator[tuple[float, Any, float | None]]
    steps = ridge_path(*train) if penalty == "ridge" else norm_path(penalty, *train)
    path: list[Fitted] = []
    for strength, model, kkt in steps:
        seen, unseen = (
            float(np.mean(np.argmax(scores_of(model, H), axis=1) != y))
            for H, y in (validation, test)
        )
        n = len(model.support_) if penalty != "ridge" else train[0].shape[1]
        covered = coverage(scores_of(model, test[0]), test[1])
        path.append(Fitted(strength, seen, unseen, covered, n, kkt))
        errors = [step.validation_error for step in path]
        if len(path) - 1 - int(np.argmin(errors)) >= PATIENCE:
            break
    # Of equals the sparsest.
    best = path[int(np.argmin([step.validation_error for step in path]))]
    return Chosen(penalty, *at, best, path, commit())


def runs(options: Any, digits: Digits, support: np.ndarray) -> Iterator[Chosen]:
    """Yield what was chosen for every size, seed and penalty."""
    centers, last = digits.X[support], len(digits.X) - VALIDATION
    rows = np.setdiff1d(np.arange(last, len(digits.X)), support)
    validation = kernel(digits.X[rows], centers, LENGTH).astype(np.float32), digits.y[rows]
    test = kernel(digits.X_test, centers, LENGTH).astype(np.float32), digits.y_test
    for size, seed in itertools.product(SIZES, range(options.seeds)):
        if size == max(SIZES) and seed >= options.seeds_of_largest:
            continue
        rng = np.random.default_rng(seed)
        of_class = [np.flatnonzero(digits.y[:last] == c) for c in range(CLASSES)]
        rows = np.concatenate([rng.choice(rows, size, replace=False) for rows in of_class])
        train = kernel(digits.X[rows], centers, LENGTH).astype(np.float32), digits.y[rows]
        for penalty in PENALTIES:
            kept = options.runs / f"{penalty.replace('/', '-')}-{size}-{seed}.json"
            if not kept.is_file():
                found = chosen(penalty, train, validation, test, (size, seed))
                print(found.penalty, size, seed, found.best, flush=True)
                write_text(kept, json.dumps(plain(found)))
            yield _read(kept)


def _read(kept: Path) -> Chosen:
    """Return what was chosen by a run that is complete."""
    content = json.loads(kept.read_text(encoding="utf-8"))
    path = [Fitted(**step) for step in content["path"]]
    return Chosen(**{**content, "best": Fitted(**content["best"]), "path": path})


def by_size(found: list[Chosen], field: str, factor: float, digits: int) -> str:
    """Return a table of penalties against sizes: means and deviations over seeds."""
    sizes = sorted({run.size for run in found})
    rows = []
    for penalty in PENALTIES:
        cells = [
            spread(
                [
                    factor * getattr(run.best, field)
                    for run in found
                    if (run.penalty, run.size) == (penalty, size)
                ],
                digits,
            )
            for size in sizes
        ]
        rows.append([_named(penalty), *cells])
    return table(["penalty", *(f"{size} per class" for size in sizes)], rows)


def differences(found: list[Chosen]) -> str:
    """Return a table of test errors less that of ℓ1 with the same examples, in points."""
    sizes = sorted({run.size for run in found})
    errors = {(r.penalty, r.size, r.seed): 100 * r.best.test_error for r in found}
    rows = []
    for penalty in PENALTIES[1:]:
        cells = []
        for size in sizes:
            seeds = sorted({seed for _, s, seed in errors if s == size})
            gained = [errors[penalty, size, i] - errors["l1", size, i] for i in seeds]
            ahead = sum(value < 0 for value in gained)
            cells.append(f"{spread(gained)} (ahead in {ahead} of {len(seeds)})")
        rows.append([_named(penalty), *cells])
    return table(["penalty", *(f"{size} per class" for size in sizes)], rows)


def _named(penalty: str) -> str:
    return "λ/2‖W‖²" if penalty == "ridge" else penalty


def draw_sizes(found: list[Chosen], path: Path) -> None:
    """Draw coverage and error against the number of examples."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    sizes = sorted({run.size for run in found})
    for axis, field in zip(axes, ("test_coverage", "test_error"), strict=True):
        for penalty in PENALTIES:
            values = [
                [getattr(r.best, field) for r in found if (r.penalty, r.size) == (penalty, size)]
                for size in sizes
            ]
            means = [np.mean(v) for v in values]
            axis.errorbar(sizes, means, [deviation(v) for v in values], label=_named(penalty))
        axis.set(xlabel="training examples per class", ylabel=field.replace("_", " "))
        axis.set(xscale="log", yscale="log")
    axes[0].legend()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    """Find the hypotheses, choose λ for every size and seed, run the boosters, write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds-of-largest", type=int, default=3, help="of 300 per class")
    parser.add_argument(
        "--runs", type=Path, default=Path("out/kernel_hypotheses"),
        help="folder that keeps each run; what is there is not run again",
    )  # fmt: skip
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    with thread_limit(options.jobs):
        digits = load(options.data)
        counts = {length: mistakes(digits.X[:SEEN], digits.y[:SEEN], length) for length in LENGTHS}
        support = counts[LENGTH]
        found = list(runs(options, digits, support))
        races = [
            kept_race(
                options.runs / "race-mnist.json",
                lambda: mnist_race(digits, support, RACE_SIZE, kernel, LENGTH),
            ),
            kept_race(options.runs / "race-landsat.json", lambda: landsat_race(options.data)),
        ]
    write(options, counts, found, races)


def write(
    options: Any, counts: dict[float, np.ndarray], found: list[Chosen], races: list[Race]
) -> None:
    """Write page, pictures and raw runs."""
    options.out.mkdir(parents=True, exist_ok=True)
    draw_sizes(found, options.out / "kernel_hypotheses.png")
    draw_races(races, options.out / "kernel_hypotheses-boosters.png")
    mistaken = {length: len(rows) for length, rows in counts.items()}
    keep_runs(
        options.out,
        "kernel_hypotheses",
        {"mistakes": mistaken, "chosen": found, "boosters": races},
    )
    n = mistaken[LENGTH]
    write_page(
        options.out,
        "kernel_hypotheses",
        length=LENGTH,
        hypotheses=n,
        n_validation=VALIDATION,
        last_seed=options.seeds - 1,
        largest=max(SIZES),
        seeds_of_largest=options.seeds_of_largest,
        errors=by_size(found, "test_error", 100, 2),
        features=by_size(found, "features", 1, 0),
        differences=differences(found),
        largest_kkt=f"{max(run.best.kkt or 0 for run in found):.2g}",
        rounds=ROUNDS,
        entering=ENTERING,
        sweeps=SWEEPS,
        boosters="\n\n".join(described(race) for race in races),
        commits=", ".join(dict.fromkeys(run.commit for run in found)),
    )


if __name__ == "__main__":
    main()
