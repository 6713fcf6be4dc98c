"""Commands that learn: train and warmup."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from visionshare.cli.options import DataFolder, Jobs

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(train)
    app.command()(warmup)


def train(
    pipeline: Annotated[str, typer.Argument(help="Name of a pipeline, or a recipe file (.toml).")],
    data: DataFolder = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder: new, empty or of a run; default out/PIPELINE."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of the learner at most (learner.rounds).")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help='Memory for columns, such as "2GiB" (store.memory).')
    ] = None,
    jobs: Jobs = -1,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, such as learner.alpha=1e-3."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a stopped run.")] = False,
) -> None:
    """Train a classifier; write it with its figures and a report.

    Example: visionshare train digits --out out/digits

    Example: visionshare train mnist --data ~/data --memory 2GiB

    Example: visionshare train textures --data ~/data --set data.source=brodatz
    """
    from visionshare.recipes import load_recipe
    from visionshare.recipes import train as run
    from visionshare.resources import parse_size, resolve_jobs

    changes = list(settings or [])
    if rounds is not None:
        changes.append(f"learner.rounds={rounds}")
    if memory is not None:
        parse_size(memory, "--memory")
        changes.append(f'store.memory="{memory}"')
    if seed is not None:
        changes.append(f"seed={seed}")
    recipe = load_recipe(pipeline, changes)
    folder = out if out is not None else Path("out") / recipe.name
    result = run(recipe, folder, data, resolve_jobs(jobs, "--jobs"), resume, sys.stderr.isatty())
    figures = result.metrics
    percent = 100 * figures["test_error_rate"]
    typer.echo(
        f"test error   {percent:.2f} % ({figures['test_errors']} of {figures['test_images']})"
    )
    typer.echo(f"features     {figures['features']}")
    typer.echo(f"macs         {figures['macs']:,} multiply-accumulates per image")
    typer.echo(f"classifier   {folder / 'classifier.safetensors'}")
    typer.echo(f"report       {folder / 'report.html'}")


def warmup() -> None:
    """Compile the kernels now, so that the first real run does not wait for them.

    Example: visionshare warmup
    """
    import numpy as np

    from visionshare.columns import ArrayColumns
    from visionshare.generators.patches import PatchTemplates
    from visionshare.learners import FineTuning, ShareBoost, fine_tune

    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    for images in (
        rng.integers(0, 255, (40, 8, 8), np.uint8),
        rng.random((40, 8, 8), np.float32),
    ):
        family = PatchTemplates(3, 16, 2, (2.0,), n_patches=500).fit(images)
        for dtype in ("float32", "float16"):
            columns = ArrayColumns.from_family(family, images, dtype)
            model = ShareBoost(rounds=2).fit(columns, labels)
            classifier = model.to_classifier(family)
            classifier.decision_function(images)
        # A single image has kernels of its own.
        classifier.decision_function(images[:1])
        tuned = fine_tune(classifier, images, labels, FineTuning(epochs=1))
        tuned.decision_function(images[:1])
    typer.echo("the kernels are compiled")
