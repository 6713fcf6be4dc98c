"""MNIST from anchors: ShareBoost of piece-wise linear functions against a Gaussian SVM.

Shalev-Shwartz, Wexler and Shashua, "ShareBoost: Efficient multiclass learning with feature
sharing", §4.2, §7.5 and figure 7; whether wider searches or longer refits are better; and linear
functions that fade to 0 at the radius, whose anchors begin as k-means' centers and move by
gradients.

    python -m scripts.reproduce.anchors --data DIR

The SVM, the choice of the ridge, searches and moved anchors that are in the raw runs beside the
page are not run again; with another --out all are.
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
    kept_runs,
    listed,
    plain,
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

# Training images, and how many of them, the last, validate.
IMAGES, VALIDATION = 60_000, 10_000
GAMMAS = (0.01, 0.02, 0.03, 0.04, 0.06)
COSTS = (2.0, 5.0, 10.0, 20.0, 50.0)
POOL: dict[str, Any] = {"n_components": 50, "n_anchors": 1500, "n_radii": 35}
ROUNDS, ALPHAS = 230, (3e-5, 1e-4, 3e-4)
# A few steps per round: the next round resumes from there; refits of up to 300 take 2.6 times as
# long and are no better on the validation images. This search chooses the ridge.
LEARNER: dict[str, Any] = {
    "search": "random",
    "search_options": {"n": 60},
    "refit_tol": 1e-3,
    "max_iter": 6,
    "scaling": "none",
}
# All candidates on a tenth of the images, the best 64 of them on all images: the search of the
# figure. A copy of sampled images is small, whatever the number of columns.
SCREENED: dict[str, Any] = {"search": "screened", "search_options": {"max_bytes": 1 << 40}}
# What a round looks at, and gradients of its refit at most; the first is the learner above. They
# have the ridge that is best at full length.
SEARCHED, SEARCH_ROUNDS, SEARCH_SEEDS, COUNTS = 1e-4, 40, 1, (10, 20, 40)
SEARCHES: dict[tuple[str, int], dict[str, Any]] = {
    ("60 random candidates", 6): {},
    ("600 random candidates", 6): {"search_options": {"n": 600}},
    ("all candidates", 6): {"search": "exhaustive", "search_options": None},
    ("all candidates, screened", 6): SCREENED,
    ("60 random candidates", 300): {"max_iter": 300},
}

# Anchors that move: the middle of three radii.
MOVED, RADII, RADIUS = 230, 3, 1
TUNING: dict[str, Any] = {
    "epochs": 8, "rate": 3e-3, "alpha": 1e-2, "label_smoothing": 0.1, "head": "linear",
    "validation_fraction": 0.0,
}  # fmt: skip

# Constants of --quick.
QUICK = {
    "GAMMAS": GAMMAS[1:3], "COSTS": COSTS[1:3], "POOL": {**POOL, "n_anchors": 30}, "ROUNDS": 10,
    "ALPHAS": ALPHAS[:2], "SEARCH_ROUNDS": 4, "MOVED": 20, "IMAGES": 3000,
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


def pool_of(images: np.ndarray, seed: int = 0) -> KernelAnchors:
    """Return the candidates, which a seed draws."""
    return KernelAnchors("linear", scaling="none", random_state=seed, **POOL).fit(images)


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


def chosen_errors(family: KernelAnchors, data: Examples, kept: Path) -> dict[str, float]:
    """Return the error of each ridge on the last training images.

    The rounds of each are kept in a folder of ``kept``.
    """
    errors = {}
    for alpha in ALPHAS:
        folder = kept / f"ridge-{alpha:g}"
        model = learn(family, data, ROUNDS, alpha, last_of(data[1]), checkpoint=folder)
        errors[f"{alpha:g}"] = 100 * float(model.path_[-1].validation_error or 0)
    return errors


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


def measured_svm(data: Examples, test: Examples) -> dict[str, Any]:
    """Return error and support vectors of an SVM on the principal components."""
    small = KernelAnchors("linear", 2, 2, 50, scaling="none").fit(data[0])
    V, W = small.vectors(data[0]), small.vectors(test[0])
    at, tried = chosen_svm(V, data[1])
    error, machines, _ = svm_error((V, data[1]), (W, test[1]), at)
    return {"error": error, "machines": machines, "tried": tried}


def curve(
    data: Examples, test: Examples, kept: Path, tried: dict[str, float] | None
) -> dict[str, Any]:
    """Choose the ridge, learn from all but a few validation images, and test every round."""
    images, y = data
    family = pool_of(images)
    errors = tried or chosen_errors(family, data, kept)
    alpha = float(min(errors, key=lambda one: errors[one]))
    validation = np.zeros(len(y), bool)
    validation[np.random.default_rng(0).choice(len(y), len(y) // 60, replace=False)] = True
    begun = time.process_time()
    changes = {**SCREENED, "checkpoint": kept / "final"}
    model = learn(family, data, ROUNDS, alpha, validation, **changes)
    return {
        "sizes": POOL,
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


def searched(data: Examples, seed: int, changes: dict[str, Any]) -> Searched:
    """Return what a search and its refits reach; the last examples validate and do not train."""
    family = pool_of(data[0], seed)
    begun = time.process_time()
    changes = {**changes, "random_state": seed}
    model = learn(family, data, SEARCH_ROUNDS, SEARCHED, last_of(data[1]), **changes)
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
    """Measure what is missing of SVM, anchors and searches; write page and picture."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("out/anchors"), help="folder of rounds")
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    images, y = read(options.data / "mnist", "train")
    data, test = (images[:IMAGES], y[:IMAGES]), read(options.data / "mnist", "t10k")
    found = kept_runs(options.out, "anchors") or {}
    with thread_limit(options.jobs):
        if "svm" not in found:
            found["svm"] = measured_svm(data, test)
        tried = found.get("greedy", {}).get("tried")
        found["greedy"] = curve(data, test, options.runs, tried)
        searches = found.setdefault("searches", {})
        for key, changes in SEARCHES.items():
            runs = searches.setdefault(" | ".join(map(str, key)), [])
            runs += [
                plain(searched(data, seed, changes)) for seed in range(len(runs), SEARCH_SEEDS)
            ]
        moving = found.setdefault("moved", [])
        moving += [
            plain(moved(data, test, seed, MOVED)) for seed in range(len(moving), options.seeds)
        ]
    write(options.out, found, len(data[1]))


def write(out: Path, found: dict[str, Any], n_train: int) -> None:
    """Write page, picture and raw runs."""
    greedy, error, machines = found["greedy"], found["svm"]["error"], found["svm"]["machines"]
    searches = {
        key: [Searched(**run) for run in found["searches"][" | ".join(map(str, key))]]
        for key in SEARCHES
    }
    seconds = {
        search: np.mean([run.seconds for run in runs]) for (search, _), runs in searches.items()
    }
    moving = [Moved(**run) for run in found["moved"]]
    out.mkdir(parents=True, exist_ok=True)
    plot(out / "anchors.png", greedy, error)
    keep_runs(out, "anchors", found)
    best = [["SVM, Gaussian kernel", f"{error:.2f}", machines]]
    best.append(["ShareBoost", f"{greedy['test'][-1]:.2f}", len(greedy["test"])])
    errors = [run.error for run in moving]
    said = f"{spread(errors)} ({listed(np.round(errors, 2))})"
    best.append(["tapered anchors, moved", said, moving[0].anchors])
    write_page(
        out,
        "anchors",
        best=table(["", "test error, %", "anchors or support vectors"], best),
        points_above=f"{greedy['test'][-1] - error:.2f}",
        n_anchors=len(greedy["test"]),
        n_components=POOL["n_components"],
        n_validation=f"{min(VALIDATION, n_train // 6):,}",
        searches=table_of(searches),
        cost=f"{seconds['all candidates'] / seconds['all candidates, screened']:.1f}",
        n_seeds=SEARCH_SEEDS,
        moved_above=f"{np.mean(errors) - error:.2f}",
        moved_error=spread([run.train_error for run in moving]),
        moved_seconds=f"{np.mean([run.seconds for run in moving]):.0f}",
        macs=f"{moving[0].macs:,}",
        tuning=TUNING,
        sizes=", ".join(f"{number} {name[2:]}" for name, number in POOL.items()),
        alpha=f"{SEARCHED:g}",
    )


if __name__ == "__main__":
    main()
