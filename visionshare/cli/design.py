"""The command that finds a structure within budgets and writes its recipe."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.listing import completes
from visionshare.cli.options import DataFolder, Jobs, Json
from visionshare.cli.quantities import count_of, seconds_of
from visionshare.cli.text import say
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.cli.commands import Commands
    from visionshare.recipes import DesignResult
    from visionshare.recipes.design.trials import Trial

__all__ = ["register"]

# Trials that are shown.
_SHOWN = 10


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(design)


def design(
    pipeline: Annotated[
        str,
        typer.Argument(
            help="Name of a pipeline, or a recipe file (.toml).",
            autocompletion=completes("pipelines"),
        ),
    ],
    data: DataFolder = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder: new, or of this design; default out/PIPELINE-design."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", help="All trials together, such as 90s, 30m or 2h.")
    ] = None,
    structures: Annotated[int | None, typer.Option(help="Structures at most.")] = None,
    macs: Annotated[
        str | None, typer.Option(help="Multiply-accumulates per image at most, such as 400k.")
    ] = None,
    parameters: Annotated[
        str | None, typer.Option(help="Learned numbers at most, such as 12k.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--bytes", help='Bytes of all arrays at most, such as "64KiB".')
    ] = None,
    jobs: Jobs = -1,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, such as design.n_layers=[1]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find layers, templates and a head within budgets; write the recipe that trains them."""
    # The same command resumes a design that was stopped; a longer --time continues one that
    # ended. Example: visionshare design mnist --data ~/data --time 30m --macs 400k --parameters
    # 12k Example: visionshare design digits --structures 9 --macs 20k --set fine_tuning.epochs=9
    from visionshare.machine.resources import parse_size, resolve_jobs
    from visionshare.recipes import Budget, design_recipe, load_recipe

    threads = resolve_jobs(jobs, "--jobs")
    if time is None and structures is None:
        raise InputError("--time", None, "a time such as 30m; or --structures, or both")
    if structures is not None and structures < 1:
        raise InputError("--structures", structures, "a whole number of at least 1")
    seconds = None if time is None else seconds_of(time, "--time")
    budget = Budget(
        None if macs is None else count_of(macs, "--macs"),
        None if parameters is None else count_of(parameters, "--parameters"),
        None if memory is None else parse_size(memory, "--bytes"),
    )
    changes = [*(settings or []), *([] if seed is None else [f"seed={seed}"])]
    recipe = load_recipe(pipeline, changes)
    folder = out if out is not None else Path("out") / f"{recipe.name}-design"
    found = design_recipe(
        recipe,
        folder,
        budget,
        seconds=seconds,
        n_structures=structures,
        data_dir=data,
        jobs=threads,
    )
    _say(found, as_json)


def _say(found: DesignResult, as_json: bool) -> None:
    from visionshare.recipes.design.trials import RECIPE, TABLE, rank

    path = found.out / RECIPE
    if as_json:
        trials = [_values(trial) for trial in found.trials]
        values = {"recipe": str(path), "best": _values(found.best), "trials": trials}
        say(json.dumps(values))
        return
    say("error, %  epochs       macs  parameters  structure")
    ranked = [trial for trial in sorted(found.trials, key=rank) if trial.error is not None]
    for trial in ranked[:_SHOWN]:
        cost = trial.cost
        say(
            f"{100 * (trial.error or 0):8.2f}  {trial.epochs:6d}  {cost.macs:9,}  "
            f"{cost.parameters:10,}  {trial.structure}"
        )
    n, seconds = len({trial.number for trial in found.trials}), sum(t.seconds for t in found.trials)
    say(f"trials       {len(found.trials)} of {n} structures, {seconds:.0f} seconds")
    say(f"table        {found.out / TABLE}")
    say(f"recipe       {path}")
    say(f"next         visionshare train {path}")


def _values(trial: Trial) -> dict[str, Any]:
    return {**asdict(trial), "text": str(trial.structure)}
