"""Which part of the error on MNIST is whose: ShareBoost as printed, and what was added since.

The recipe is `mnist-deformed` for every step, but for what the step says. Each run is a folder
under --runs; what is there is not run again, and the page is written from what is there:

    python -m scripts.reproduce.mnist_steps --data DIR --seeds 3                  # 60 000 images
    python -m scripts.reproduce.mnist_steps --data DIR --seeds 3 --copies 5       # 360 000
    python -m scripts.reproduce.mnist_steps --data DIR --seeds 3 --images 10000 \\
        --rounds 100 --templates 300                                              # in minutes
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page
from visionshare.recipes import Recipe, load_recipe, train

PIPELINE = "mnist-deformed"
# Rounds beyond those of the recipe whose features compete, a fifth of them.
BACKWARD = 0.2


class Step(NamedTuple):
    """What a step says of learner and pool; it has what those before it have."""

    name: str
    text: str
    criterion: str = "orthogonal"
    backward: bool = True
    tuned: bool = False
    pool: str = "patches"


STEPS = (
    Step("printed", "ShareBoost as printed: gradient criterion", "gradient", False),
    Step("orthogonal", "orthogonal criterion", backward=False),
    Step("backward", "backward steps"),
    Step("tuned", "fine-tuning", tuned=True),
    Step("deslanted", "deslanted images", tuned=True, pool="deslanted-patches"),
)


class Run(NamedTuple):
    """A run of a step."""

    step: str
    seed: int
    images: int
    test_errors: int
    test_images: int
    features: int
    macs: int
    seconds: dict[str, float]


def recipe_of(step: Step, seed: int, options: Any) -> Recipe:
    """Return the recipe of a step."""
    inside = "" if step.pool == "patches" else "patches."
    settings = [
        f"seed={seed}",
        f"features.pool={step.pool}",
        f"features.parameters.{inside}n_templates={options.templates}",
        f"learner.rounds={options.rounds}",
        f"learner.criterion={step.criterion}",
        f"learner.n_backward={round(BACKWARD * options.rounds) if step.backward else 0}",
        f"deformations.copies={options.copies}",
    ]
    settings += [] if options.images is None else [f"data.limit={options.images}"]
    recipe = load_recipe(PIPELINE, settings)
    # Without copies there is nothing to deform.
    changes: dict[str, Any] = {} if options.copies else {"deformations": None}
    return recipe.model_copy(update=changes if step.tuned else {**changes, "fine_tuning": None})


def folder_of(step: Step, seed: int, options: Any) -> Path:
    """Return the folder of a run; another size has other folders."""
    size = f"{options.images or 'all'}-{options.copies}-{options.rounds}-{options.templates}"
    folder: Path = options.runs / size / f"{step.name}-{seed}"
    return folder


def figures(step: Step, seed: int, options: Any) -> Run | None:
    """Return the figures of a run; None where it did not end."""
    file = folder_of(step, seed, options) / "metrics.json"
    if not file.is_file():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    keys = ("train_images", "test_errors", "test_images", "features", "macs", "seconds")
    return Run(step.name, seed, *(found[key] for key in keys))


def rows(found: Sequence[Run]) -> list[list[str]]:
    """Return a row a step that has runs: its errors, and what it took off the last row's."""
    lines: list[list[str]] = []
    before: dict[int, float] = {}
    for step in STEPS:
        runs = [run for run in found if run.step == step.name]
        if not runs:
            continue
        errors = {run.seed: 100 * run.test_errors / run.test_images for run in runs}
        less = [before[seed] - errors[seed] for seed in errors if seed in before]
        each = ", ".join(f"{error:.2f}" for error in errors.values())
        lines.append(
            [
                step.text if not lines else f"and {step.text}",
                f"{spread(list(errors.values()))} ({each})",
                spread(less) if less else "",
                str(max(run.features for run in runs)),
                f"{max(run.macs for run in runs):,}",
                f"{np.mean([sum(run.seconds.values()) for run in runs]):.0f}",
            ]
        )
        before = errors
    return lines


def main() -> None:
    """Run what is missing and write page and runs."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("out/mnist-steps"), help="their folder")
    parser.add_argument("--images", type=int, help="training images (default all)")
    parser.add_argument("--copies", type=int, default=0, help="deformed copies of each (default 0)")
    parser.add_argument("--rounds", type=int, default=305, help="features (default 305)")
    parser.add_argument("--templates", type=int, default=1000, help="of the pool (default 1000)")
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    for seed in range(1 if options.quick else options.seeds):
        for step in STEPS:
            if figures(step, seed, options) is None:
                folder = folder_of(step, seed, options)
                recipe = recipe_of(step, seed, options)
                train(recipe, folder, options.data, options.jobs, resume=folder.is_dir())
                print(figures(step, seed, options), flush=True)
            write(options)


def write(options: Any) -> None:
    """Write the page of what is there, and the runs."""
    each = ((step, seed) for step in STEPS for seed in range(options.seeds))
    found = [run for run in (figures(*one, options) for one in each) if run is not None]
    lines = rows(found)
    name = "mnist_steps-deformed" if options.copies else "mnist_steps"
    keep_runs(options.out, name, found)
    header = ["step", "test error, %", "less than the row above", "features"]
    write_page(
        options.out,
        "mnist_steps",
        name,
        images=f"{max(run.images for run in found):,}",
        rounds=options.rounds,
        templates=options.templates,
        beyond=round(BACKWARD * options.rounds),
        seeds=len({run.seed for run in found}),
        steps=table([*header, "multiply-accumulates", "seconds"], lines),
    )


if __name__ == "__main__":
    main()
