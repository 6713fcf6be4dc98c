"""Which part of the error on MNIST is whose: ShareBoost as printed, and what was added since.

The recipe is `mnist-deformed` for every step, but for what the step says. Each run is a folder
under --runs. What is there, or in the raw runs beside the page, is not run again, and the page is
written from both:

    python -m scripts.reproduce.mnist_steps --data DIR --seeds 3
    python -m scripts.reproduce.mnist_steps --data DIR --seeds 3 --copies 0       # 60 000 alone
    python -m scripts.reproduce.mnist_steps --data DIR --seeds 3 --images 10000 \\
        --rounds 100 --templates 300 --out FOLDER                                 # in minutes

With another --out all is run anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.reproduce.results import (
    arguments,
    commit,
    keep_runs,
    kept_runs,
    render,
    spread,
    table,
    write_page,
)
from visionshare.classifier import CompactClassifier
from visionshare.columns import ArrayColumns
from visionshare.files.durable import write_text
from visionshare.machine.memory import memory_limit
from visionshare.recipes import Recipe, load_recipe, train
from visionshare.recipes.folder import WORK, run_folder
from visionshare.recipes.run import TrainingRun, claim_work_folder
from visionshare.recipes.schema import as_settings
from visionshare.recipes.stages.evaluation import evaluate, with_test_errors
from visionshare.recipes.stages.images import prepare_images
from visionshare.recipes.stages.learning import learn_classifier, make_learner
from visionshare.recipes.stages.results import write_results
from visionshare.recipes.stages.tuning import fine_tuned

PIPELINE = "mnist-deformed"
# Rounds beyond those of the recipe whose features compete, a fifth of them.
BACKWARD = 0.2
# What comes before fine-tuning, which begins with the features that a run before it chose.
CHOOSING = ("features", "columns", "learning")


class Step(NamedTuple):
    """What a step says of learner and pool; it has what those before it have.

    A fine-tuned step begins with the classifier of the run ``chosen``. It is compared with the step
    before it, or with the step ``than``. The search of a step that ``searches_copies`` is screened
    and sees originals and deformed copies; it needs ``--copies``.
    """

    name: str
    text: str
    criterion: str = "orthogonal"
    backward: bool = True
    pool: str = "patches"
    chosen: str = ""
    than: str = ""
    searches_copies: bool = False


STEPS = (
    Step("printed", "ShareBoost as printed: gradient criterion", "gradient", False),
    Step("orthogonal", "orthogonal criterion", backward=False),
    Step("backward", "backward steps"),
    Step("tuned", "fine-tuning", chosen="backward"),
    Step("deslanted", "deslanted images", pool="deslanted-patches", chosen="deslanted-chosen"),
    Step(
        "printed-tuned", "ShareBoost as printed, and fine-tuning alone", "gradient", False,
        chosen="printed", than="printed",
    ),
    Step(
        "searched", "ShareBoost as printed, screened search on all images", "gradient", False,
        than="printed", searches_copies=True,
    ),
)  # fmt: skip
# Numbers of features at which the paper's text says what ShareBoost errs.
PRINTED = (75, 266)
# The commit of a run that was killed before it was noted.
UNKNOWN = "unknown"


class Figures(NamedTuple):
    """A run of a step."""

    step: str
    seed: int
    images: int
    test_errors: int
    test_images: int
    features: int
    macs: int
    seconds: dict[str, float]
    commit: str
    # Test errors after so many features, of a search that takes none back.
    errors_at: dict[str, int] | None = None


def recipe_of(step: Step, seed: int, options: Any, copies: int = 0) -> Recipe:
    """Return the recipe of a step."""
    inside = "" if step.pool == "patches" else "patches."
    settings = [
        f"seed={seed}",
        f"features.pool={step.pool}",
        f"features.parameters.{inside}n_templates={options.templates}",
        f"learner.rounds={options.rounds}",
        f"learner.criterion={step.criterion}",
        f"learner.n_backward={round(BACKWARD * options.rounds) if step.backward else 0}",
        f"deformations.copies={copies}",
    ]
    settings += ["learner.search=screened"] if step.searches_copies else []
    settings += [] if options.images is None else [f"data.limit={options.images}"]
    recipe = load_recipe(PIPELINE, settings)
    # Without copies there is nothing to deform.
    changes: dict[str, Any] = {} if copies else {"deformations": None}
    return recipe.model_copy(update=changes if step.chosen else {**changes, "fine_tuning": None})


def size_of(options: Any) -> str:
    """Return the size of the runs; another one has other folders and other raw runs."""
    return f"{options.images or 'all'}-{options.rounds}-{options.templates}"


def folder_of(name: str, seed: int, options: Any, copies: int = 0) -> Path:
    """Return the folder of a run."""
    folder: Path = options.runs / size_of(options) / f"{name}-{seed}-{copies}"
    return folder


def figures(step: Step, seed: int, options: Any, copies: int = 0) -> Figures | None:
    """Return the figures of a run, from its folder or the raw runs; None where it did not end."""
    file = folder_of(step.name, seed, options, copies) / "metrics.json"
    if not file.is_file():
        return kept(step, seed, options, copies)
    found = json.loads(file.read_text(encoding="utf-8"))
    # Seconds of the processor do not depend on what else the machine did.
    keys = ("train_images", "test_errors", "test_images", "features", "macs", "processor_seconds")
    read = [*(found[key] for key in keys), found.get("commit", UNKNOWN)]
    after = None if copies else errors_after(step, file.parent)
    return Figures(step.name, seed, *read)._replace(errors_at=after)


def errors_after(step: Step, folder: Path) -> dict[str, int] | None:
    """Return the test errors of a search after some of its rounds; None where it had no such."""
    if step.chosen or step.backward:
        return None
    classifier = CompactClassifier.load(folder / "classifier.safetensors")
    n_test = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["test_images"]
    return {
        str(one.n_features): round(one.test_error * n_test)
        for one in classifier.path or ()
        if one.n_features in PRINTED and one.test_error is not None
    }


def raw_runs(options: Any) -> dict[str, Any]:
    """Return the raw runs beside the page; none where those are of another size."""
    runs = kept_runs(options.out, "mnist_steps")
    if runs is None or runs["size"] != size_of(options):
        return {"copies": 0, "plain": [], "deformed": []}
    return dict(runs)


def kept(step: Step, seed: int, options: Any, copies: int) -> Figures | None:
    """Return the figures of a run among the raw runs beside the page."""
    runs = raw_runs(options)
    if copies and runs["copies"] != copies:
        return None
    every = [Figures(**one) for one in runs["deformed" if copies else "plain"]]
    return next((one for one in every if (one.step, one.seed) == (step.name, seed)), None)


def run(step: Step, seed: int, options: Any, copies: int = 0) -> None:
    """Run a step where its figures are missing."""
    if figures(step, seed, options, copies) is not None:
        return
    if step.searches_copies:
        choose(step, seed, options, copies)
    elif step.chosen or copies:
        chosen = choose(step._replace(name=step.chosen or step.name, chosen=""), seed, options)
        folder = folder_of(step.name, seed, options, copies)
        learn_again(recipe_of(step, seed, options, copies), folder, chosen, options)
        note_commit(folder)
    else:
        choose(step, seed, options)
    print(figures(step, seed, options, copies), flush=True)


def choose(step: Step, seed: int, options: Any, copies: int = 0) -> Path:
    """Return the folder of a step without fine-tuning, which is run where it is not there."""
    folder = folder_of(step.name, seed, options, copies)
    if not (folder / "metrics.json").is_file():
        recipe = recipe_of(step, seed, options, copies)
        train(recipe, folder, options.data, options.jobs, resume=folder.is_dir())
        note_commit(folder)
    return folder


def note_commit(folder: Path) -> None:
    """Add the commit of the code to the figures of a run."""
    file = folder / "metrics.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    write_text(file, json.dumps({**found, "commit": commit()}, indent=2) + "\n")


def learn_again(recipe: Recipe, folder: Path, chosen: Path, options: Any) -> None:
    """Learn with the features of another run: by fine-tuning, or without it the weights alone."""
    stages = TrainingRun(recipe, folder / WORK, options.data, options.jobs)
    before = json.loads((chosen / "metrics.json").read_text(encoding="utf-8"))
    for name in CHOOSING:
        stages.clock.seconds[name] = before["seconds"][name]
        stages.clock.processor_seconds[name] = before["processor_seconds"][name]
    with memory_limit(stages.memory, "store.memory"), run_folder(folder, recipe) as results:
        with stages.clock("data"):
            images = prepare_images(stages)
        claim_work_folder(stages, images.pictures, resume=stages.work.is_dir())
        classifier = CompactClassifier.load(chosen / "classifier.safetensors")
        about = {**classifier.metadata, "recipe": as_settings(recipe)}
        classifier = replace(classifier, metadata=about)
        if recipe.fine_tuning is None:
            with stages.clock("weights"):
                classifier = with_new_weights(stages, classifier, images)
        else:
            with stages.clock("fine-tuning"):
                classifier = fine_tuned(stages, classifier, images)
        with stages.clock("evaluation"):
            classifier = with_test_errors(classifier, images.test, options.jobs)
            evaluation = evaluate(classifier, images.test, options.jobs)
        write_results(stages, results, classifier, images, evaluation)


def with_new_weights(
    stages: TrainingRun, classifier: CompactClassifier, images: Any
) -> CompactClassifier:
    """Return the classifier with weights of all its features, by the objective of its search."""
    columns = ArrayColumns.from_family(
        classifier.family, images.training.images, n_jobs=stages.jobs
    )
    # As one group the features enter in one round, which fits the weights of all of them.
    columns.groups = np.zeros(classifier.n_features, np.int64)
    settings = {"rounds": 1, "n_backward": 0, "criterion": "gradient", "checkpoint": None}
    learner = make_learner(stages).set_params(**settings)
    found = learn_classifier(
        learner,
        columns,
        classifier.family,
        images.training.labels,
        images.training.classes,
        dict(classifier.metadata),
    )
    return replace(found, preprocessing=classifier.preprocessing)


def rows(found: Sequence[Figures], without: Sequence[Figures] | None = None) -> list[list[str]]:
    """Return a row a step that has runs: its errors, and what it took off those before it.

    Parameters
    ----------
    found : sequence of Figures
    without : sequence of Figures, optional
        The same steps without copies: what these took off stands in a column before.
    """
    lines: list[list[str]] = []
    errors: dict[str, dict[int, float]] = {}
    before: dict[int, float] = {}
    for step in STEPS:
        runs = [one for one in found if one.step == step.name]
        if not runs:
            continue
        own = errors[step.name] = _errors(runs)
        each = ", ".join(f"{error:.2f}" for error in own.values())
        beside = [] if without is None else [_errors([o for o in without if o.step == step.name])]
        beside.append(errors.get(step.than, {}) if step.than else before)
        lines.append(
            [
                step.text if not lines or step.than else f"and {step.text}",
                f"{spread(list(own.values()))} ({each})",
                *(_less(own, others) for others in beside),
                f"{max(one.macs for one in runs):,}",
                f"{np.mean([sum(one.seconds.values()) for one in runs]):.0f}",
            ]
        )
        before = own
    return lines


def rows_after(found: Sequence[Figures]) -> list[list[str]]:
    """Return a row a step whose runs know it: its errors after fewer features, – where unknown."""
    lines = []
    for step in STEPS:
        runs = [one for one in found if one.step == step.name and one.errors_at]
        if runs:
            lines.append([step.text, *(_errors_at(runs, str(n)) for n in PRINTED)])
    return lines


def _errors_at(runs: Sequence[Figures], n_features: str) -> str:
    counts = [((one.errors_at or {}).get(n_features), one.test_images) for one in runs]
    errors = [100 * count / n_test for count, n_test in counts if count is not None]
    return f"{spread(errors)} ({', '.join(f'{e:.2f}' for e in errors)})" if errors else "–"


def _less(errors: dict[int, float], others: dict[int, float]) -> str:
    """Return the spread of what the errors of the same seeds fell by; empty for no such seed."""
    less = [others[seed] - errors[seed] for seed in errors if seed in others]
    return spread(less) if less else ""


def _errors(runs: Sequence[Figures]) -> dict[int, float]:
    """Return the error in percent of each seed."""
    return {one.seed: 100 * one.test_errors / one.test_images for one in runs}


def main() -> None:
    """Run what is missing and write page and runs."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("out/mnist-steps"), help="their folder")
    parser.add_argument("--images", type=int, help="training images (default all)")
    parser.add_argument(
        "--copies",
        type=int,
        default=5,
        help="deformed copies of each image, beside runs without (default 5; 0: no such runs)",
    )
    parser.add_argument("--rounds", type=int, default=305, help="features (default 305)")
    parser.add_argument("--templates", type=int, default=1000, help="of the pool (default 1000)")
    parser.set_defaults(seeds=3)
    options = parser.parse_args()
    seeds = range(options.seeds)
    for seed in seeds:
        for step in STEPS:
            if not step.searches_copies:
                run(step, seed, options)
                write(options)
    for seed in seeds if options.copies else ():
        for step in STEPS:
            run(step, seed, options, options.copies)
            write(options)


def write(options: Any) -> None:
    """Write the page of what is there, and the runs."""
    # Seeds of the raw runs beside the page that were not asked for now stay on it.
    before = [*raw_runs(options)["plain"], *raw_runs(options)["deformed"]]
    seeds = sorted({*range(options.seeds), *(one["seed"] for one in before)})

    def found(steps: Sequence[Step], copies: int) -> list[Figures]:
        each = (figures(step, seed, options, copies) for step in steps for seed in seeds)
        return [one for one in each if one is not None]

    plain = found(STEPS, 0)
    # Without copies to be run those of the page stay.
    copies = options.copies or raw_runs(options)["copies"]
    deformed = found(STEPS, copies) if copies else []
    runs = {"size": size_of(options), "copies": copies}
    keep_runs(options.out, "mnist_steps", {**runs, "plain": plain, "deformed": deformed})
    first = ["step", "test error, %"]
    last = ["less than the row above", "multiply-accumulates", "seconds"]
    with_copies = render(
        "mnist_steps/copies",
        images=f"{max((one.images for one in deformed), default=0):,}",
        copies=copies,
        steps=table([*first, "less than without", *last], rows(deformed, plain)),
    )
    write_page(
        options.out,
        "mnist_steps",
        images=f"{max(one.images for one in plain):,}",
        rounds=options.rounds,
        templates=options.templates,
        beyond=round(BACKWARD * options.rounds),
        seeds=len({one.seed for one in plain}),
        commits=", ".join(dict.fromkeys(one.commit for one in [*plain, *deformed])),
        steps=table([*first, *last], rows(plain)),
        after=table(["step", *(f"{n} features" for n in PRINTED)], rows_after(plain)),
        with_copies=with_copies if deformed else "",
    )


if __name__ == "__main__":
    main()
