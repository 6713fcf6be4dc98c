"""MNIST from 230 tapered anchors that move: ShareBoost, then gradients, beside a Gaussian SVM.

The comparison of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass
learning with feature sharing", NIPS 2011, §7.5, with linear functions that fade to 0 at the radius.

    python -m scripts.reproduce.moved_anchors --data DIR
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from scripts.reproduce.anchors import read, svm_error
from scripts.reproduce.results import (
    arguments,
    keep_runs,
    listed,
    plain,
    spread,
    table,
    write_page,
)
from visionshare import KernelAnchors, ShareBoost
from visionshare.durable import write_text
from visionshare.generators.anchors import AnchorColumns
from visionshare.learners.fine_tuning import FineTuning, fine_tune
from visionshare.resources import thread_limit

ROUNDS, VALIDATION, PART = 230, 10_000, 15_000
POOL: dict[str, Any] = {"n_anchors": 500, "n_radii": 3, "n_components": 50, "scaling": "none"}
# The search sees so many of the training images; what it chose then moves on all of them.
SEARCHED = 3000
LEARNER: dict[str, Any] = {
    "alpha": 1e-3, "search": "random", "search_options": {"n": 30}, "refit_tol": 1e-3,
    "max_iter": 3, "scaling": "none",
}  # fmt: skip
MOVES: dict[str, Any] = {
    "epochs": 8, "rate": 3e-3, "alpha": 1e-2, "head": "linear", "validation_fraction": 0.0,
}  # fmt: skip
# One setting changed at a time, on a part of the training images.
TRIED: dict[str, dict[str, Any]] = {
    "no smoothing": {},
    "labels smoothed by 0.1": {"label_smoothing": 0.1},
    "labels smoothed by 0.1, averages, 12 epochs at 1e-2": {
        "label_smoothing": 0.1, "averaging": 0.999, "epochs": 12, "rate": 1e-2,
    },
}  # fmt: skip
SVM = (0.03, 5.0)

# Images and classes.
Examples = tuple[np.ndarray, np.ndarray]


class Run(NamedTuple):
    """One seed: errors in percent, seconds of the processor, and what an image costs."""

    seed: int
    chosen_error: float
    error: float
    train_error: float
    anchors: int
    macs: int
    search_seconds: float
    moving_seconds: float


def wrong(classifier: Any, examples: Examples) -> float:
    """Return the error in percent."""
    return 100 * float(np.mean(classifier.predict(examples[0]) != examples[1]))


def chosen(train: Examples, rounds: int, seed: int) -> Any:
    """Return the classifier of the anchors that ShareBoost chooses on a part of the images."""
    X, y = train
    family = KernelAnchors("tapered", random_state=seed, **POOL).fit(X)
    part = np.sort(np.random.default_rng(seed).permutation(len(y))[:SEARCHED])
    model = ShareBoost(rounds, random_state=seed, **LEARNER)
    return model.fit(AnchorColumns(family, X[part]), y[part]).to_classifier(family)


def trials(train: Examples, rounds: int) -> dict[str, float]:
    """Return the errors on the last training images of every setting that was tried."""
    X, y = train
    held, part = (X[-VALIDATION:], y[-VALIDATION:]), (X[:PART], y[:PART])
    start = chosen(part, rounds, 0)
    errors = {}
    for name, changes in TRIED.items():
        settings = FineTuning(**{**MOVES, **changes})
        errors[name] = wrong(fine_tune(start, *part, settings), held)
        print(name, errors[name], flush=True)
    errors["the SVM"] = svm_beside(part, held)[0]
    return errors


def measured(train: Examples, test: Examples, rounds: int, changes: Any, seed: int) -> Run:
    """Return one seed's classifier on the test images."""
    begun = time.process_time()
    start = chosen(train, rounds, seed)
    between = time.process_time()
    settings = FineTuning(**{**MOVES, **changes, "random_state": seed})
    moved = fine_tune(start, *train, settings)
    return Run(
        seed=seed,
        chosen_error=wrong(start, test),
        error=wrong(moved, test),
        train_error=wrong(moved, train),
        anchors=len(cast("KernelAnchors", moved.family).anchors_),
        macs=int(moved.family.macs()),
        search_seconds=between - begun,
        moving_seconds=time.process_time() - between,
    )


def once(kept: Path, run: Any) -> Any:
    """Return what a run left, or run it and keep that."""
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text(kept, json.dumps(plain(run())))
    return json.loads(kept.read_text(encoding="utf-8"))


def main() -> None:
    """Choose a setting, measure every seed and the SVM, write page and runs."""
    parser = arguments(__doc__)
    parser.set_defaults(seeds=3)
    parser.add_argument(
        "--runs", type=Path, default=Path("out/moved_anchors"),
        help="folder that keeps each run; what is there is not run again",
    )  # fmt: skip
    options = parser.parse_args()
    train, test = (read(options.data / "mnist", kind) for kind in ("train", "t10k"))
    rounds = 5 if options.quick else ROUNDS
    with thread_limit(options.jobs):
        errors = once(options.runs / "trials.json", lambda: trials(train, rounds))
        best = min(TRIED, key=lambda name: errors[name])
        found = [
            Run(**once(
                options.runs / f"{seed}.json",
                lambda seed=seed: measured(train, test, rounds, TRIED[best], seed),
            ))
            for seed in range(options.seeds)
        ]  # fmt: skip
        svm = once(options.runs / "svm.json", lambda: svm_beside(train, test))
    write(options, errors, best, found, svm)


def svm_beside(train: Examples, test: Examples) -> tuple[float, int, float]:
    """Return the SVM's error in percent, support vectors and seconds, on as many components."""
    family = KernelAnchors("tapered", 2, 2, POOL["n_components"], scaling="none").fit(train[0])
    V, W = (family.vectors(images) for images in (train[0], test[0]))
    return svm_error((V, train[1]), (W, test[1]), SVM)


def write(
    options: Any, errors: dict[str, float], best: str, found: list[Run], svm: list[float]
) -> None:
    """Write page and runs."""
    settings = {**asdict(FineTuning(**MOVES)), **TRIED[best]}
    content = {"trials": errors, "settings": settings, "runs": found, "svm": svm}
    keep_runs(options.out, "moved_anchors", content)
    moved = [run.error for run in found]
    rows = [
        ["SVM, Gaussian kernel", f"{svm[0]:.2f}", int(svm[1]), f"{svm[2]:.0f}"],
        [
            "ShareBoost, tapered anchors, moved",
            f"{spread(moved)} ({listed(np.round(moved, 2))})",
            max(run.anchors for run in found),
            f"{np.mean([r.search_seconds + r.moving_seconds for r in found]):.0f}",
        ],
        [
            "the same before they move",
            spread([run.chosen_error for run in found]),
            ROUNDS,
            f"{np.mean([run.search_seconds for run in found]):.0f}",
        ],
    ]
    write_page(
        options.out,
        "moved_anchors",
        errors=table(["", "test error, %", "anchors or support vectors", "seconds"], rows),
        above=f"{np.mean(moved) - svm[0]:.2f}",
        n_seeds=len(found),
        train_error=spread([run.train_error for run in found]),
        macs=f"{np.mean([run.macs for run in found]):,.0f}",
        pool=POOL,
        searched=SEARCHED,
        learner=LEARNER,
        moves=MOVES,
        part=PART,
        n_validation=VALIDATION,
        best=best,
        tried=table(["", "error, %"], [[name, f"{e:.2f}"] for name, e in errors.items()]),
        gamma=SVM[0],
        cost=SVM[1],
    )


if __name__ == "__main__":
    main()
