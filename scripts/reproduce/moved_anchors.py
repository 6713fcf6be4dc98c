"""MNIST from 230 tapered anchors that move by gradients, beside a Gaussian SVM.

The comparison of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass
learning with feature sharing", NIPS 2011, figure 7, with linear functions that fade to 0 at the
radius, and with anchors that begin as k-means' centers.

    python -m scripts.reproduce.moved_anchors --data DIR
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.anchors import VALIDATION, read, svm_error
from scripts.reproduce.results import arguments, keep_runs, listed, spread, table, write_page
from visionshare import CompactClassifier, KernelAnchors
from visionshare.learners.fine_tuning import FineTuning, fine_tune
from visionshare.machine.resources import thread_limit

ANCHORS, RADII, RADIUS, COMPONENTS = 230, 3, 1, 50
SETTINGS: dict[str, Any] = {
    "epochs": 8, "rate": 3e-3, "alpha": 1e-2, "label_smoothing": 0.1, "head": "linear",
    "validation_fraction": 0.0,
}  # fmt: skip
# γ and C, chosen on the same validation images for the page of anchors.
SVM = (0.03, 5.0)

# Images and classes.
Examples = tuple[np.ndarray, np.ndarray]


class Run(NamedTuple):
    """A classifier: errors in percent, seconds of the processor, and what an image costs."""

    error: float
    train_error: float
    anchors: int
    macs: int
    seconds: float


def wrong(classifier: CompactClassifier, examples: Examples) -> float:
    """Return the error in percent."""
    return 100 * float(np.mean(classifier.predict(examples[0]) != examples[1]))


def moved(train: Examples, test: Examples, seed: int, anchors: int = ANCHORS) -> Run:
    """Return what k-means' anchors of one radius are worth after they moved."""
    begun = time.process_time()
    X, y = train
    pool = KernelAnchors(
        "tapered", anchors, RADII, COMPONENTS, scaling="none", random_state=seed
    ).fit(X)
    family = pool.take(np.flatnonzero(np.asarray(pool.groups) % RADII == RADIUS))
    classes = np.unique(y)
    weights = np.zeros((len(classes), family.n_features_), np.float32)
    start = CompactClassifier(family, weights, np.zeros(len(classes), np.float32), classes)
    found = fine_tune(start, X, y, FineTuning(**SETTINGS, random_state=seed))
    seconds = time.process_time() - begun
    errors = wrong(found, test), wrong(found, train)
    return Run(*errors, len(family.anchors_), found.macs, seconds)


def svm_beside(train: Examples, test: Examples) -> tuple[float, int, float]:
    """Return the SVM's error in percent, support vectors and seconds, on as many components."""
    family = KernelAnchors("tapered", 2, 2, COMPONENTS, scaling="none").fit(train[0])
    inputs, others = (family.vectors(images) for images in (train[0], test[0]))
    return svm_error((inputs, train[1]), (others, test[1]), SVM)


def main() -> None:
    """Measure held-out images, every seed and the SVM; write page and runs."""
    parser = arguments(__doc__)
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    train, test = (read(options.data / "mnist", kind) for kind in ("train", "t10k"))
    anchors = ANCHORS
    if options.quick:
        anchors, train = 20, (train[0][:2000], train[1][:2000])
    n = min(VALIDATION, len(train[1]) // 2)
    part, held = (train[0][:-n], train[1][:-n]), (train[0][-n:], train[1][-n:])
    with thread_limit(options.jobs):
        runs = {
            "held out": moved(part, held, 0, anchors),
            "held out, SVM": svm_beside(part, held),
            **{f"seed {seed}": moved(train, test, seed, anchors) for seed in range(options.seeds)},
            "SVM": svm_beside(train, test),
        }
    keep_runs(options.out, "moved_anchors", {"settings": SETTINGS, "runs": runs})
    write(options, runs, n)


def write(options: Any, runs: dict[str, Any], n_validation: int) -> None:
    """Write the page."""
    seeds = [runs[f"seed {seed}"] for seed in range(options.seeds)]
    errors = [run.error for run in seeds]
    svm = runs["SVM"]
    rows = [
        ["SVM, Gaussian kernel", f"{runs['held out, SVM'][0]:.2f}", f"{svm[0]:.2f}", svm[1],
         f"{svm[2]:.0f}"],
        ["tapered anchors, moved", f"{runs['held out'].error:.2f}",
         f"{spread(errors)} ({listed(np.round(errors, 2))})", seeds[0].anchors,
         f"{np.mean([run.seconds for run in seeds]):.0f}"],
    ]  # fmt: skip
    head = ["", "held-out error, %", "test error, %", "anchors or support vectors", "seconds"]
    write_page(
        options.out,
        "moved_anchors",
        errors=table(head, rows),
        above=f"{np.mean(errors) - svm[0]:.2f}",
        n_seeds=len(seeds),
        train_error=spread([run.train_error for run in seeds]),
        macs=f"{seeds[0].macs:,}",
        settings=SETTINGS,
        n_validation=f"{n_validation:,}",
        gamma=SVM[0],
        cost=SVM[1],
    )


if __name__ == "__main__":
    main()
