"""Anchors chosen greedily: whether wider searches or longer refits are better, on MNIST.

For the page of S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: Efficient multiclass
learning with feature sharing", NIPS 2011, figure 7: its anchors are chosen among 60 random ones a
round and refitted by a few steps. Reads no test images.

    python -m scripts.reproduce.anchor_searches --data DIR
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple, cast

import numpy as np

from scripts.reproduce.anchors import LEARNERS, VALIDATION, read
from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page
from visionshare import KernelAnchors, ShareBoost
from visionshare.generators.anchors import AnchorColumns
from visionshare.machine.resources import thread_limit

POOL: dict[str, Any] = {"n_components": 50, "n_anchors": 1500, "n_radii": 35}
# The ridge that is best at full length, see the page of anchors.
ALPHA = 1e-4
ROUNDS = 40
COUNTS = (10, 20, 40)
# What a round looks at, and gradients of its refit at most; the first is the page of anchors'.
SETTINGS: dict[tuple[str, int], dict[str, Any]] = {
    ("60 random candidates", 6): {"search": "random", "search_options": {"n": 60}},
    ("600 random candidates", 6): {"search": "random", "search_options": {"n": 600}},
    ("all candidates", 6): {"search": "exhaustive", "search_options": None},
    ("60 random candidates", 300): {"search": "random", "search_options": {"n": 60}},
}


class Run(NamedTuple):
    """Errors in percent after every round, the last loss, and one processor's seconds."""

    errors: list[float]
    train_error: float
    loss: float
    seconds: float


def n_validation_of(y: np.ndarray) -> int:
    """Return how many of the last examples validate."""
    return min(VALIDATION, len(y) // 6)


def learned(family: KernelAnchors, data: Any, rounds: int, options: Any, seed: int) -> Run:
    """Return what a search and its refits reach; the last examples validate and do not train."""
    images, y = data
    validation = np.arange(len(y)) >= len(y) - n_validation_of(y)
    columns = AnchorColumns(family, images)
    begun = time.process_time()
    model = ShareBoost(rounds, alpha=ALPHA, random_state=seed, **options)
    model.fit(columns, y, validation=validation)
    seconds = time.process_time() - begun
    last = model.path_[-1]
    errors = [100 * float(cast(float, step.validation_error)) for step in model.path_]
    return Run(errors, 100 * last.train_error, last.loss, seconds)


def write(options: Any, runs: dict[tuple[str, int], list[Run]], n_validation: int) -> None:
    """Write page and runs of what is measured by now."""
    rounds = min(len(run.errors) for found in runs.values() for run in found)
    counts = [count for count in COUNTS if count < rounds] + [rounds]
    rows = [
        [
            search,
            steps,
            *(spread([run.errors[count - 1] for run in found]) for count in counts),
            spread([run.train_error for run in found]),
            spread([run.loss for run in found], 4),
            f"{np.mean([run.seconds for run in found]):.0f}",
        ]
        for (search, steps), found in runs.items()
    ]
    head = ["scored in a round", "gradients of a refit at most"]
    head += [f"error, {count} anchors, %" for count in counts]
    head += ["training error, %", "loss", "seconds"]
    raw = {f"{search}, {steps}": found for (search, steps), found in runs.items()}
    keep_runs(options.out, "anchor_searches", raw)
    write_page(
        options.out,
        "anchor_searches",
        errors=table(head, rows),
        n_seeds=len(next(iter(runs.values()))),
        n_rounds=rounds,
        best=min(runs, key=lambda setting: np.mean([run.errors[-1] for run in runs[setting]]))[0],
        n_validation=f"{n_validation:,}",
        sizes=", ".join(f"{number} {name[2:]}" for name, number in POOL.items()),
        jobs=options.jobs,
        alpha=f"{ALPHA:g}",
    )


def main() -> None:
    """Learn by every setting and seed; write the page after each setting."""
    parser = arguments(__doc__)
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    images, y = read(options.data / "mnist", "train")
    rounds, sizes = ROUNDS, dict(POOL)
    if options.quick:
        images, y, rounds, sizes = images[:6000], y[:6000], 4, {**POOL, "n_anchors": 30}
    runs: dict[tuple[str, int], list[Run]] = {}
    with thread_limit(options.jobs):
        for (search, steps), chosen in SETTINGS.items():
            found = runs.setdefault((search, steps), [])
            for seed in range(options.seeds):
                family = KernelAnchors("linear", scaling="none", random_state=seed, **sizes)
                learner = {**LEARNERS["linear"], "max_iter": steps, **chosen}
                family.fit(images)
                found.append(learned(family, (images, y), rounds, learner, seed))
                print(search, steps, seed, found[-1], flush=True)
            write(options, runs, n_validation_of(y))


if __name__ == "__main__":
    main()
