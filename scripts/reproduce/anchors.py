"""MNIST from anchors: ShareBoost of piece-wise linear functions against a Gaussian SVM.

Shalev-Shwartz, Wexler and Shashua, "ShareBoost: Efficient multiclass learning with feature
sharing", §4.2, §7.5 and figure 7; whether wider searches or longer refits are better; and linear
functions that fade to 0 at the radius, whose anchors begin as k-means' centers and move by
gradients.

    python -m scripts.reproduce.anchors --data DIR
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from scripts.reproduce.results import (
    arguments,
    keep_runs,
    listed,
    pyplot,
    spread,
    stopwatch,
    table,
    write_page,
)
from visionshare import CompactClassifier, KernelAnchors, ShareBoost
from visionshare.datasets.readers.idx import read_idx
from visionshare.generators.anchors import AnchorColumns
from visionshare.learners.fine_tuning import FineTuning, fine_tune
from visionshare.machine.resources import thread_limit

VALIDATION = 10000
GAMMAS = (0.01, 0.02, 0.03, 0.04, 0.06)
COSTS = (2.0, 5.0, 10.0, 20.0, 50.0)
POOL: dict[str, Any] = {"n_components": 50, "n_anchors": 1500, "n_radii": 35}
ROUNDS, ALPHAS = 230, (3e-5, 1e-4, 3e-4)
# A few steps per round: the next round resumes from there; refits of up to 300 take 2.6 times as
# long and are no better on the validation images. An exhaustive search is, at five times the cost.
LEARNER: dict[str, Any] = {
    "search": "random",
    "search_options": {"n": 60},
    "refit_tol": 1e-3,
    "max_iter": 6,
    "scaling": "none",
}
# What a round looks at, and gradients of its refit at most; the first is the learner above. They
# have the ridge that is best at full length.
SEARCHED, SEARCH_ROUNDS, COUNTS = 1e-4, 40, (10, 20, 40)
SEARCHES: dict[tuple[str, int], dict[str, Any]] = {
    ("60 random candidates", 6): {},
    ("600 random candidates", 6): {"search_options": {"n": 600}},
    ("all candidates", 6): {"search": "exhaustive", "search_options": None},
    ("60 random candidates", 300): {"max_iter": 300},
}

# Anchors that move: the middle of three radii.
MOVED, RADII, RADIUS = 230, 3, 1
TUNING: dict[str, Any] = {
    "epochs": 8, "rate": 3e-3, "alpha": 1e-2, "label_smoothing": 0.1, "head": "linear",
    "validation_fraction": 0.0,
}  # fmt: skip

# Images and classes.
Examples = tuple[np.ndarray, np.ndarray]


def read(folder: Path, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images and classes of the 60 000 ("train") or the 10 000 ("t10k")."""
    images, labels = (f"{kind}-images-idx3-ubyte.gz", f"{kind}-labels-idx1-ubyte.gz")
    return read_idx(folder / images), read_idx(folder / labels).astype(np.int64)


def last_of(y: np.ndarray) -> np.ndarray:
    """Return which examples validate: the last."""
    return np.arange(len(y)) >= len(y) - min(VALIDATION, len(y) // 6)


def pool_of(images: np.ndarray, sizes: dict[str, Any], seed: int = 0) -> KernelAnchors:
    """Return the candidates, which a seed draws."""
    return KernelAnchors("linear", scaling="none", random_state=seed, **sizes).fit(images)


def learn(
    family: KernelAnchors,
    data: Examples,
    rounds: int,
    alpha: float,
    validation: np.ndarray,
    **changes: Any,
) -> ShareBoost:
    """Return ShareBoost; validation examples give errors and temperature."""
    model = ShareBoost(rounds, alpha=alpha, **{**LEARNER, **changes})
    return model.fit(AnchorColumns(family, data[0]), data[1], validation=validation)


def test_errors(model: ShareBoost, family: Any, images: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the test error after every round, in percent."""
    features = family.take(model.support_).transform(images)
    errors = []
    for step in model.path_:
        scores = features[:, : step.n_features] @ step.weights.T + step.intercept
        errors.append(100 * np.mean(model.classes_[np.argmax(scores, axis=1)] != y))
    return np.array(errors)


def chosen_alpha(
    family: KernelAnchors, data: Examples, rounds: int, kept: Path
) -> tuple[float, dict[float, float]]:
    """Return the ridge with the least error on the last training images, and all errors.

    The rounds of each are kept in a folder of ``kept``.
    """
    errors = {}
    for alpha in ALPHAS:
        folder = kept / f"ridge-{alpha:g}"
        model = learn(family, data, rounds, alpha, last_of(data[1]), checkpoint=folder)
        errors[alpha] = 100 * float(model.path_[-1].validation_error or 0)
    return min(errors, key=lambda s: errors[s]), errors


def chosen_svm(V: np.ndarray, y: np.ndarray) -> tuple[tuple[float, float], list[list[Any]]]:
    """Return γ and C with the least error on the validation images, and the rows of a table."""
    rows = []
    for gamma, cost in product(GAMMAS, COSTS):
        train, validation = ((V[part], y[part]) for part in (~last_of(y), last_of(y)))
        error, machines, _ = svm_error(train, validation, (gamma, cost))
        rows.append([gamma, cost, round(error, 2), machines])
    gamma, cost = min(rows, key=lambda row: row[2])[:2]
    return (gamma, cost), rows


def svm_error(train: Any, test: Any, at: tuple[float, float]) -> tuple[float, int, float]:
    """Return an SVM's test error in percent, its support vectors and its seconds."""
    from sklearn.svm import SVC

    begun = time.process_time()
    model = SVC(gamma=at[0], C=at[1], cache_size=1000).fit(*train)
    seconds = time.process_time() - begun
    return 100 * float(np.mean(model.predict(test[0]) != test[1])), len(model.support_), seconds


def curve(
    data: Examples, test: Examples, sizes: dict[str, Any], rounds: int, kept: Path
) -> dict[str, Any]:
    """Choose the ridge, learn from all but a few validation images, and test every round."""
    images, y = data
    family = pool_of(images, sizes)
    alpha, errors = chosen_alpha(family, data, rounds, kept)
    validation = np.zeros(len(y), bool)
    validation[np.random.default_rng(0).choice(len(y), len(y) // 60, replace=False)] = True
    begun = time.process_time()
    model = learn(family, data, rounds, alpha, validation, checkpoint=kept / "final")
    return {
        "sizes": sizes,
        "alpha": alpha,
        "tried": errors,
        "n_validation": int(validation.sum()),
        "train": np.array([100 * step.train_error for step in model.path_]),
        "test": test_errors(model, family, *test),
        "macs": [step.macs for step in model.path_],
        "seconds": time.process_time() - begun,
    }


class Searched(NamedTuple):
    """Errors in percent after every round, the last loss, and one processor's seconds."""

    errors: list[float]
    train_error: float
    loss: float
    seconds: float


def searched(
    data: Examples, sizes: dict[str, Any], rounds: int, seed: int, changes: dict[str, Any]
) -> Searched:
    """Return what a search and its refits reach; the last examples validate and do not train."""
    family = pool_of(data[0], sizes, seed)
    begun = time.process_time()
    model = learn(family, data, rounds, SEARCHED, last_of(data[1]), random_state=seed, **changes)
    seconds = time.process_time() - begun
    last = model.path_[-1]
    errors = [100 * float(cast(float, step.validation_error)) for step in model.path_]
    return Searched(errors, 100 * last.train_error, last.loss, seconds)


def table_of(runs: dict[tuple[str, int], list[Searched]]) -> str:
    """Return the table of searches, a column each."""
    rows: list[list[Any]] = [["gradients of a refit at most", *(steps for _, steps in runs)]]
    for n in COUNTS:
        ends = [[run.errors[min(n, len(run.errors)) - 1] for run in one] for one in runs.values()]
        rows.append([f"error, {n} anchors, %", *map(spread, ends)])
    for name, label, digits in (
        ("train_error", "training error, %", 2),
        ("loss", "loss", 4),
        ("seconds", "seconds", 0),
    ):
        found = [[getattr(run, name) for run in one] for one in runs.values()]
        rows.append([label, *(spread(values, digits) for values in found)])
    return table(["scored in a round", *(search for search, _ in runs)], rows)


class Moved(NamedTuple):
    """A classifier: errors in percent, multiply-accumulates per image, seconds of the processor."""

    error: float
    train_error: float
    anchors: int
    macs: int
    seconds: float


def moved(train: Examples, test: Examples, seed: int, anchors: int) -> Moved:
    """Return what k-means' anchors of one radius are worth after they moved."""
    X, y = train
    with stopwatch(time.process_time) as seconds:
        drawn = KernelAnchors(
            "tapered", anchors, RADII, POOL["n_components"], scaling="none", random_state=seed
        ).fit(X)
        family = drawn.take(np.flatnonzero(np.asarray(drawn.groups) % RADII == RADIUS))
        classes = np.unique(y)
        weights = np.zeros((len(classes), family.n_features_), np.float32)
        start = CompactClassifier(family, weights, np.zeros(len(classes), np.float32), classes)
        found = fine_tune(start, X, y, FineTuning(**TUNING, random_state=seed))
    error, train_error = (100 * float(np.mean(found.predict(Z) != z)) for Z, z in (test, train))
    return Moved(error, train_error, len(family.anchors_), found.macs, seconds[0])


def plot(path: Path, curve: dict[str, Any], svm: float) -> None:
    """Draw the errors against the number of anchors."""
    plt = pyplot()

    figure, axis = plt.subplots(figsize=(7, 4.5))
    rounds = np.arange(1, len(curve["test"]) + 1)
    axis.plot(rounds, curve["test"], "C0", label="piece-wise linear, test")
    axis.plot(rounds, curve["train"], "C0", ls=":", label="piece-wise linear, training")
    axis.axhline(svm, color="k", ls="--", label="SVM, Gaussian kernel, test")
    axis.set(xlabel="anchors", ylabel="error, %", ylim=(0, 8), title="MNIST")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measure the SVM, the anchors and the searches; write page and picture."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("out/anchors"), help="folder of rounds")
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    data, test = (read(options.data / "mnist", kind) for kind in ("train", "t10k"))
    sizes, rounds, search_rounds, anchors = dict(POOL), ROUNDS, SEARCH_ROUNDS, MOVED
    if options.quick:
        data = data[0][:6000], data[1][:6000]
        sizes, rounds, search_rounds, anchors = {**POOL, "n_anchors": 30}, 10, 4, 20
    with thread_limit(options.jobs):
        small = KernelAnchors("linear", 2, 2, 50, scaling="none").fit(data[0])
        V, W = small.vectors(data[0]), small.vectors(test[0])
        at, tried = chosen_svm(V, data[1])
        error, machines, _ = svm_error((V, data[1]), (W, test[1]), at)
        greedy = curve(data, test, sizes, rounds, options.runs)
        searches = {
            key: [
                searched(data, sizes, search_rounds, seed, changes) for seed in range(options.seeds)
            ]
            for key, changes in SEARCHES.items()
        }
        moving = [moved(data, test, seed, anchors) for seed in range(options.seeds)]
    options.out.mkdir(parents=True, exist_ok=True)
    plot(options.out / "anchors.png", greedy, error)
    svm = {"error": error, "machines": machines, "tried": tried}
    found = {"svm": svm, "greedy": greedy, "searches": searches, "moved": moving}
    keep_runs(options.out, "anchors", found)
    best = [["SVM, Gaussian kernel", f"{error:.2f}", machines]]
    best.append(["ShareBoost", f"{greedy['test'][-1]:.2f}", len(greedy["test"])])
    errors = [run.error for run in moving]
    said = f"{spread(errors)} ({listed(np.round(errors, 2))})"
    best.append(["tapered anchors, moved", said, moving[0].anchors])
    write_page(
        options.out,
        "anchors",
        best=table(["", "test error, %", "anchors or support vectors"], best),
        points_above=f"{greedy['test'][-1] - error:.2f}",
        n_anchors=len(greedy["test"]),
        n_components=POOL["n_components"],
        n_validation=f"{last_of(data[1]).sum():,}",
        searches=table_of(searches),
        n_seeds=options.seeds,
        moved_above=f"{np.mean(errors) - error:.2f}",
        moved_error=spread([run.train_error for run in moving]),
        moved_seconds=f"{np.mean([run.seconds for run in moving]):.0f}",
        macs=f"{moving[0].macs:,}",
        tuning=TUNING,
        sizes=", ".join(f"{number} {name[2:]}" for name, number in sizes.items()),
        alpha=f"{SEARCHED:g}",
    )


if __name__ == "__main__":
    main()
