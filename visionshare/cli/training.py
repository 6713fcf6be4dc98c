"""Commands that learn: train and warmup."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.cautions import warn_near_majority
from visionshare.cli.listing import completes
from visionshare.cli.options import (
    Color,
    DataFolder,
    ImageSize,
    Jobs,
    Scheduler,
    Workers,
    image_size,
)  # fmt: skip
from visionshare.cli.searching import SearchOptions, chosen_recipe
from visionshare.cli.text import say
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.errors.names import nothing_named

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier
    from visionshare.cli.commands import Commands
    from visionshare.recipes import Recipe
    from visionshare.recipes.own_pictures import OwnPictures, PictureOptions

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the commands to the application."""
    app.command()(train)
    app.command()(warmup)


def train(
    pipeline: Annotated[
        str,
        typer.Argument(
            help="Your pictures (a folder of class folders, .csv, .jsonl, .npz, .parquet, .tar; "
            '"s3://bucket/*.tar" and other patterns of files, .zarr); '
            "or the name of a pipeline, or a recipe file (.toml).",
            metavar="PICTURES|PIPELINE",
            autocompletion=completes("pipelines"),
        ),
    ],
    data: DataFolder = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FOLDER|URL",
            help="Folder: new, empty or of a run; default out/NAME. Of a URL (s3://bucket/NAME) "
            "the folder is out/s3/bucket/NAME until it is uploaded.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            help="Train your pictures by this recipe (photos, glyphs, …); no search.",
            autocompletion=completes("pipelines"),
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            help="Cost per image of a classifier of your pictures, at most: multiply-accumulates "
            "(200k), bytes (64KiB), microseconds (20us), flash of a small core (flash=10KiB); "
            "default: 1M.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", help="Rough time for search and training on your pictures: 90s, 5m or 2h."
        ),
    ] = None,
    size: ImageSize = None,
    color: Color = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give rare classes the weight of frequent ones.")
    ] = False,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            "--test-fraction", help="Fraction of your pictures held out for testing; 0: none."
        ),
    ] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out pictures that cannot be read.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of the learner at most (learner.rounds).")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help='Memory for images, columns and work, such as "2GiB".')
    ] = None,
    jobs: Jobs = -1,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting, such as learner.alpha=1e-3."),
    ] = None,
    learning_curve: Annotated[
        bool,
        typer.Option(
            "--learning-curve", help="Also train on 1/8, 1/4 and 1/2 of the images, for the report."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a stopped run.")] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Train a classifier; write it with its figures and a report.

    For your pictures it searches features, layers, heads and augmentation, on training pictures.

    Example: visionshare train photos/

    Example: visionshare train photos/ --time 5m --budget 64KiB

    Example: visionshare train photos/ --budget flash=10KiB

    Example: visionshare train photos/ --recipe photos

    Example: visionshare train photos/ --size 48 --balanced --skip-broken

    Example: visionshare train digits --out out/digits

    Example: visionshare train mnist --data ~/data --memory 2GiB

    Example: visionshare train digits --workers 2

    Example: visionshare train "s3://bucket/train-*.tar" --workers 4 --out s3://bucket/runs/1
    """
    from visionshare.distributed import cluster_client
    from visionshare.distributed.clients import check_cluster
    from visionshare.distributed.warming import warm_workers
    from visionshare.files.uploads import Destination, local_place
    from visionshare.machine.resources import parse_size, resolve_jobs
    from visionshare.recipes import train as run
    from visionshare.recipes.own_pictures import PictureOptions, names_pictures
    from visionshare.recipes.stages.stored import names_storage

    if out is not None:
        Destination.of(out)
    n_jobs = resolve_jobs(jobs, "--jobs")
    check_cluster(workers, scheduler)
    changes = list(settings or [])
    if rounds is not None:
        changes.append(f"learner.rounds={rounds}")
    if memory is not None:
        parse_size(memory, "--memory")
        changes.append(f'store.memory="{memory}"')
    if seed is not None:
        if seed < 0:
            raise InputError("--seed", seed, "a whole number from 0 on")
        changes.append(f"seed={seed}")
    search = SearchOptions.of(budget, time, size)
    options = PictureOptions(recipe, image_size(size), color, test_fraction, balanced, skip_broken)
    is_own = names_pictures(pipeline)
    if is_own:
        chosen = _own_pictures(pipeline, data, options, search, changes, n_jobs).recipe
    else:
        chosen = _pipeline(pipeline, data, options, search, changes)
    place = out or str(Path("out", chosen.name))
    # A cluster that does not answer ends the command before it has searched.
    with cluster_client(workers, scheduler, n_jobs) as client:
        if client is not None:
            # While features are fitted here, the workers load what they will need.
            warm_workers(client)
        if is_own and recipe is None and not names_storage(pipeline):
            chosen = chosen_recipe(
                chosen, local_place(place), search, resume, n_jobs, client=client
            )
        elif chosen.search is not None:
            search = replace(search, budget=chosen.search.budget, seconds=chosen.search.time)
            chosen = chosen_recipe(chosen, local_place(place), search, resume, n_jobs, data, client)
        result = run(
            chosen, place, data, n_jobs, resume, learning_curve=learning_curve, client=client
        )
        addresses = [] if client is None else sorted(client.nthreads())
    _show(result.metrics, place.rstrip("/"))
    if addresses:
        say(f"workers      {len(addresses)}: {', '.join(addresses)}")


def _own_pictures(
    source: str,
    data: Path | None,
    options: PictureOptions,
    search: SearchOptions,
    changes: list[str],
    jobs: int,
) -> OwnPictures:
    """Return the recipe for pictures, which a search changes; say what was found in them."""
    from visionshare.recipes.own_pictures import recipe_for_pictures
    from visionshare.recipes.stages.stored import names_storage

    if data is not None:
        accepted = f"nothing beside {source}, which is read from its own place"
        raise InputError("--data", str(data), accepted)
    if options.recipe is not None and search.given:
        accepted = f"the search: visionshare train {source} without --recipe"
        raise InputError(", ".join(search.given), f"--recipe {options.recipe}", accepted)
    if names_storage(source):
        if search.given:
            accepted = "pictures of this machine: a search reads them all, again and again"
            raise InputError(", ".join(search.given), source, accepted)
    elif options.recipe is None:
        from visionshare.image_classifier.recipe_search import check_settings

        check_settings(changes)
    searches = options.recipe is None and not names_storage(source)
    own = recipe_for_pictures(source, options, changes, jobs, searches)
    for reason in own.reasons:
        say(reason)
    if not searches:
        say(own.base)
    return own


def _pipeline(
    name: str,
    data: Path | None,
    options: PictureOptions,
    search: SearchOptions,
    changes: list[str],
) -> Recipe:
    """Return the recipe of a name or a file; options of pictures are refused."""
    from visionshare.recipes import list_pipelines, load_recipe
    from visionshare.recipes.own_pictures import PictureOptions, check_data_folder
    from visionshare.recipes.reading import LISTED_PIPELINES

    known = list_pipelines()
    if name not in known and not os.path.isfile(name):
        raise DataError(nothing_named(name, "folder, file or pipeline", known, LISTED_PIPELINES))
    recipe = load_recipe(name, changes)
    if options != PictureOptions() or search.given:
        named = {**_OPTIONS, "color": "--color" if options.color else "--gray"}
        default = vars(PictureOptions())
        given = [named[key] for key, value in vars(options).items() if value != default[key]]
        raise RecipeError(
            f"{', '.join(given + search.given)}: not used: {name!r} is a recipe, which takes "
            "--set. For pictures of your own: visionshare train FOLDER"
        )
    check_data_folder(recipe, data)
    if os.path.isdir(name):
        say(f"{name} is the pipeline of this name; the folder is ./{name}", err=True)
    return recipe


_OPTIONS = {
    "recipe": "--recipe",
    "size": "--size",
    "test_fraction": "--test-fraction",
    "balanced": "--balanced",
    "skip_broken": "--skip-broken",
}


def _show(figures: dict[str, Any], place: str) -> None:
    """Write what a user wants to know first of a run."""
    from visionshare.datasets.notices import notices_told

    for note in figures.get("notes", []):
        say(f"note         {note}")
        notices_told(note)
    if figures["test_error_rate"] is None:
        say("test error   none: there are no test pictures")
    else:
        origin = " kept aside" if figures["test_origin"] == "held out" else ""
        say(
            f"test error   {100 * figures['test_error_rate']:.2f} % "
            f"({figures['test_errors']} of {figures['test_images']}{origin})"
        )
        counts = (figures["test_errors"], figures["test_images"])
        majority = (figures["majority_class"], figures["majority_error"])
        warn_near_majority("test", *counts, *majority)
    for point in figures.get("learning_curve", []):
        say(f"  after {point['train_images']:>8,} images  {100 * point['test_error_rate']:.2f} %")
    say(f"features     {figures['features']}")
    say(f"macs         {figures['macs']:,} multiply-accumulates per image")
    say(f"classifier   {os.path.join(place, 'classifier.safetensors')}")
    say(f"report       {os.path.join(place, 'report.html')}")


def warmup() -> None:
    """Compile the kernels now, so that the first real run does not wait for them."""
    # Example: visionshare warmup
    import numpy as np

    from visionshare.columns import ArrayColumns
    from visionshare.generators.layers.deslant import Deslant
    from visionshare.generators.layers.network import Network
    from visionshare.generators.layers.templates import Templates
    from visionshare.generators.patches import PatchTemplates
    from visionshare.learners import FineTuning, ShareBoost, fine_tune
    from visionshare.machine.progress import stage

    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    pictures = (rng.integers(0, 255, (40, 8, 8), np.uint8), rng.random((40, 8, 8), np.float32))
    layers = [Deslant(), Templates(3, 3, pool=2, n_patches=500), Templates(9, 2, grid=2)]
    with stage("compiling", 5 * len(pictures)) as advance:
        for images in pictures:
            family = PatchTemplates(3, 16, 2, (2.0,), n_patches=500).fit(images)
            for dtype in ("float32", "float16"):
                columns = ArrayColumns.from_family(family, images, dtype)
                classifier = ShareBoost(rounds=2).fit(columns, labels).to_classifier(family)
                classifier.decision_function(images)
                advance(1)
            _classify_as_predict(classifier, images)
            advance(1)
            tuned = fine_tune(classifier, images, labels, FineTuning(epochs=1))
            _classify_as_predict(tuned, images)
            advance(1)
            network = Network(layers).fit(images)
            columns = ArrayColumns.from_family(network, images)
            classifier = ShareBoost(rounds=2).fit(columns, labels).to_classifier(network)
            tuned = fine_tune(classifier, images, labels, FineTuning(epochs=1, head="hidden"))
            _classify_as_predict(tuned, images)
            advance(1)
    say("the kernels are compiled")


def _classify_as_predict(classifier: CompactClassifier, images: np.ndarray) -> None:
    """Classify one image and many, from a file: its arrays are read-only, and have kernels."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        classifier.save(f"{folder}/classifier.safetensors")
        written = type(classifier).load(f"{folder}/classifier.safetensors")
    for part in (images[:1], images):
        written.decision_function(part)
