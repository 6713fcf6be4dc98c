"""Layers of templates on maps: the recipes with several seeds, and what each step buys.

Each run is a folder under --runs; what is there is not run again, so that a measurement of hours
can be stopped, and the page is written from what is there:

    python -m scripts.reproduce.layers --data DIR --jobs 2 --seeds 3
    python -m scripts.reproduce.layers --data DIR --jobs 2 --steps     # on held-out images
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.mnist import figures_of, runs_of
from scripts.reproduce.results import arguments, keep_runs, spread, table, write_page
from visionshare.recipes import load_recipe, train

PIPELINES = (
    "mnist-200k", "mnist-quick", "fashion-quick", "fashion-400k", "fashion-1m", "cifar10-500k",
    "cifar10-2m",
)  # fmt: skip

# A sixth of the training images, the same for every step.
HELD_OUT = ("data.held_out=0.16667",)


class Step(NamedTuple):
    """A recipe that is like `mnist-200k`, but for some settings; fine-tuned or not."""

    text: str
    settings: Sequence[str] = ()
    tuned: bool = True


_MAPS = "{kind='templates', n_templates=4, size=5, pool=2}"
_LAST_MAPS = "{kind='templates', n_templates=12, size=5, pool=2}"


def _layers(*layers: str) -> str:
    return f"features.parameters={{layers=[{', '.join(layers)}]}}"


def _grid(n: int, size: int = 3) -> str:
    return f"{{kind='templates', n_templates={n}, size={size}, grid=2}}"


_PLAIN = "fine_tuning.weight_standardization=false"
_LAST = "fine_tuning.averaging=0"
# Epochs of every step that is fine-tuned, and settings of --quick.
EPOCHS = 20
FEW = ("fine_tuning.epochs=1", "data.limit=1000")
STEPS = (
    Step(
        "6 templates of 7x7 pixels in 4 cells, chosen greedily",
        (
            "learner.rounds=6", _layers(_grid(300, 7)),
        ),
        tuned=False,
    ),
    Step(
        "two layers: 28 templates of 3x3 on 4 maps",
        (
            "learner.rounds=28", _layers(_MAPS, _grid(300)),
        ),
        tuned=False,
    ),
    Step(
        "three layers: 48 templates on 12 maps of 4 maps",
        (_layers(_MAPS, _LAST_MAPS, _grid(100)),),
        tuned=False,
    ),
    Step("images without slant", tuned=False),
    Step("fine-tuned, on images as they are", ("fine_tuning.deformed=false", _PLAIN, _LAST)),
    Step("on images deformed anew each epoch", (_PLAIN, _LAST)),
    Step("weight standardization", (_LAST,)),
    Step("averaged parameters"),
    Step("24 hidden units", ("fine_tuning.head=hidden", "fine_tuning.n_units=24")),
)  # fmt: skip


def run(pipeline: str, settings: Sequence[str], folder: Path, options: Any, tuned: bool) -> None:
    """Train where the folder has no figures yet."""
    if figures_of(folder) is None:
        print(folder.name, *settings, flush=True)
        recipe = load_recipe(pipeline, settings)
        recipe = recipe if tuned else recipe.model_copy(update={"fine_tuning": None})
        train(recipe, folder, options.data, options.jobs, resume=folder.is_dir())


def recipes(options: Any) -> str:
    """Return the table of the recipes whose runs are there."""
    rows = []
    for pipeline, found in runs_of(options.runs, PIPELINES).items():
        runs = list(found.values())
        errors = [100 * r["test_error_rate"] for r in runs]
        seconds = [sum(r["processor_seconds"].values()) for r in runs]
        rows.append(
            [
                f"`{pipeline}`", f"{spread(errors)} ({', '.join(f'{e:.2f}' for e in errors)})",
                f"{max(r['macs'] for r in runs):,}", f"{max(r['parameters'] for r in runs):,}",
                f"{max(r['nbytes'] for r in runs):,}", f"{np.mean(seconds):.0f}",
            ]
        )  # fmt: skip
    header = ["pipeline", "test error, %", "multiply-accumulates", "parameters"]
    return table([*header, "bytes of float32", "processor seconds of training"], rows)


def steps(options: Any) -> str:
    """Return the table of the steps that are there."""
    rows = []
    for number, step in enumerate(STEPS):
        found = figures_of(options.runs / f"step-{number}")
        if found is not None:
            error = f"{100 * found['test_error_rate']:.2f}"
            rows.append([step.text, error, f"{found['macs']:,}", f"{found['parameters']:,}"])
    return table(["step", "held-out error, %", "multiply-accumulates", "parameters"], rows)


def main() -> None:
    """Run what is missing and write the page."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("out/layers"), help="folder of runs")
    parser.add_argument("--pipelines", nargs="*", default=PIPELINES, choices=PIPELINES)
    parser.add_argument("--steps", action="store_true", help="the steps instead of the recipes")
    parser.add_argument("--remark", default="", help="how the runs were made, for the page")
    options = parser.parse_args()
    if options.steps:
        epochs = FEW if options.quick else (f"fine_tuning.epochs={EPOCHS}",)
        for number, step in enumerate(STEPS):
            settings = [*HELD_OUT, *epochs, *step.settings]
            run("mnist-200k", settings, options.runs / f"step-{number}", options, step.tuned)
    else:
        for pipeline in options.pipelines:
            for seed in range(options.seeds):
                folder = options.runs / f"{pipeline}-{seed}"
                settings = [f"seed={seed}", *(FEW if options.quick else ())]
                run(pipeline, settings, folder, options, tuned=True)
    folders = sorted(options.runs.glob("*-[0-9]"))
    keep_runs(options.out, "layers", {folder.name: figures_of(folder) for folder in folders})
    write_page(
        options.out,
        "layers",
        recipes=recipes(options),
        steps=steps(options),
        epochs=EPOCHS,
        remark=options.remark,
    )


if __name__ == "__main__":
    main()
