"""Commands that learn: train and warmup."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.answers import answer_lines
from visionshare.cli.cautions import warn_near_majority
from visionshare.cli.listing import completes
from visionshare.cli.options import (
    Cluster,
    Color,
    DataFolder,
    ImageSize,
    Jobs,
    Settings,
    SkipBroken,
    image_size,
)
from visionshare.cli.searching import SearchOptions, chosen_recipe
from visionshare.cli.text import say
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.errors.names import nothing_named
from visionshare.files.bundled import LISTED_PIPELINES, bundled
from visionshare.files.storage import is_url

if TYPE_CHECKING:
    from visionshare.recipes import Recipe
    from visionshare.recipes.own_pictures import PictureOptions


@dataclass(frozen=True)
class OwnPictureOptions:
    """Your pictures."""

    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Train with this recipe (photos, glyphs, …) instead of searching.",
            autocompletion=completes("pipelines"),
        ),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FOLDER|FILE",
            help="Continue from an earlier training (out/photos): keep its structure and features, "
            "add new pictures and classes.",
        ),
    ] = None
    size: ImageSize = None
    color: Color = None
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Weigh all classes equally, however rare.")
    ] = False
    test_fraction: Annotated[
        float | None,
        typer.Option(help="Fraction of the pictures to hold out for testing. 0 means none."),
    ] = None
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="After measuring the test error, train the final classifier on all pictures. "
            "Default: only if no test pictures are given.",
        ),
    ] = None
    skip_broken: SkipBroken = False
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|PATTERN",
            help="Keep pictures of the same object, writer or burst in one split: a column of the "
            "table, or a regular expression for file names whose bracket is the group, such "
            'as "(.*)_[0-9]+".',
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Predict values instead of classes: a column of the table (.csv, .jsonl).",
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN[,COLUMN…]",
            help='Predict several labels per picture: a column such as "cat;dog", or a column of 0'
            " and 1 for each label.",
        ),
    ] = None
    periodic: Annotated[
        float | None,
        typer.Option(metavar="PERIOD", help="Treat the values as periodic: 360 for degrees."),
    ] = None
    reject: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help='Answer "unknown" for pictures of no class, while refusing at most this share of '
            "known ones: 0.01.",
        ),
    ] = None
    unknown: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help='Pictures of no class, for --reject. A class folder named "unknown" counts too.',
        ),
    ] = None
    background: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Photographs without any object of the classes, for --reject. Prepares the "
            "classifier for `visionshare find`.",
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that the user gave."""
        names = [name for name, value in vars(self).items() if value != getattr(type(self), name)]
        options = [f"--{name.replace('_', '-')}" for name in names if name != "start"]
        options += [] if self.start is None else ["--from"]
        negative = {"--color": "--gray", "--refit": "--no-refit"}
        return [negative.get(o, o) if getattr(self, o[2:], 0) is False else o for o in options]

    def checked(self) -> PictureOptions:
        """Return the same for recipes."""
        from visionshare.recipes.own_pictures import PictureOptions

        given = {name: value for name, value in vars(self).items() if name != "start"}
        return PictureOptions(**{**given, "size": image_size(self.size)})


@dataclass(frozen=True)
class RecipeOptions:
    """Settings of recipes."""

    rounds: Annotated[
        int | None, typer.Option(help="Maximum number of rounds (learner.rounds).")
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help='Memory limit for images, columns and work, such as "2GiB".'
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None
    teacher: Annotated[
        str | None,
        typer.Option(
            metavar="self|pretrained|FILE",
            help="Also learn from a larger model: self (trained first), pretrained (on features of "
            "EfficientNet-Lite0), or a classifier or ONNX file.",
        ),
    ] = None
    unlabeled: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Pictures without labels, which the teacher labels."),
    ] = None
    settings: Settings = None

    def changes(self) -> list[str]:
        """Return the settings that differ from the recipe's, checked."""
        from visionshare.machine.resources import parse_size

        changes = list(self.settings or [])
        if self.rounds is not None:
            changes.append(f"learner.rounds={self.rounds}")
        if self.memory is not None:
            parse_size(self.memory, "--memory")
            changes.append(f'store.memory="{self.memory}"')
        if self.seed is not None:
            if self.seed < 0:
                raise InputError("--seed", self.seed, "a whole number from 0 on")
            changes.append(f"seed={self.seed}")
        if self.teacher is not None:
            changes.append(f"teacher.source={json.dumps(self.teacher)}")
        if self.unlabeled is not None:
            if self.teacher is None:
                raise InputError("--unlabeled", self.unlabeled, "a folder beside a --teacher")
            changes.append(f"teacher.unlabeled={json.dumps(self.unlabeled)}")
        return changes


def train(
    pipeline: Annotated[
        str,
        typer.Argument(
            help="Your pictures (a folder with one folder per class, or .csv, .jsonl, .npz, "
            '.parquet, .tar, .zarr, or a pattern such as "s3://bucket/*.tar"), the name of a '
            "pipeline, or a recipe file (.toml).",
            metavar="PICTURES|PIPELINE",
            autocompletion=completes("pipelines"),
        ),
    ],
    data: DataFolder = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="Output folder: new, empty or of an earlier run. Default: out/NAME. With a URL "
            "(s3://bucket/NAME), results stay in out/s3/bucket/NAME until they are uploaded.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a stopped run.")] = False,
    n_jobs: Jobs = -1,
    *,
    search: SearchOptions,
    pictures: OwnPictureOptions,
    settings_of_recipe: RecipeOptions,
    cluster: Cluster,
) -> None:
    """Train a classifier and write it with its metrics and a report.

    Given your pictures, it searches for the best features, layers, head and augmentation, using
    only training pictures.

    Example: visionshare train photos/

    Example: visionshare train photos/ --time 5m --budget 64KiB

    Example: visionshare train photos/ --recipe photos --size 48 --balanced --skip-broken

    Example: visionshare train photos/ --from out/photos

    Example: visionshare train dials.csv --target value

    Example: visionshare train mnist --data ~/data --memory 2GiB

    Example: visionshare train "s3://bucket/train-*.tar" --workers 4 --out s3://bucket/runs/1
    """
    from visionshare.files.uploads import Destination, local_place

    begun = time.perf_counter()
    # 1) Check the name and the options, before the imports that take seconds.
    known = bundled("pipelines")
    may_exist = os.path.exists(pipeline) or is_url(pipeline) or has_magic(pipeline)
    if pipeline not in known and not may_exist:
        kind = "folder, file or pipeline"
        raise DataError(nothing_named(pipeline, kind, known, LISTED_PIPELINES))
    if out is not None:
        Destination.of(out)
    changes = settings_of_recipe.changes()
    # Limits that are not accepted end the command here.
    _ = search.limits, search.seconds

    from visionshare.distributed import cluster_client
    from visionshare.distributed.clients import check_cluster
    from visionshare.distributed.warming import warm_workers
    from visionshare.generators.pretrained.network import kept_activations
    from visionshare.image_classifier.pretrained import asked_for
    from visionshare.image_classifier.recipe_search import kept_trials
    from visionshare.image_classifier.state import SearchSettings
    from visionshare.recipes import train as run
    from visionshare.recipes.own_pictures import names_pictures
    from visionshare.recipes.stages.stored import names_storage

    check_cluster(cluster.workers, cluster.scheduler)
    asked_for(search.network)
    # 2) Read the recipe.
    is_own = names_pictures(pipeline)
    searches = is_own and pictures.recipe is None and not names_storage(pipeline)
    if is_own and pictures.start is not None:
        searches = False
        recipe = _recipe_from(pipeline, pictures, [*search.given, *changes])
    elif is_own:
        recipe = _recipe_for_pictures(pipeline, data, pictures, search, changes, n_jobs)
    else:
        recipe = _recipe_of_pipeline(pipeline, data, pictures.given + search.given, changes)
    place = out or str(Path("out", recipe.name))
    # 3) Search and train. A cluster that does not answer ends the command before.
    with (
        cluster_client(cluster.workers, cluster.scheduler, n_jobs) as client,
        kept_activations(),
    ):
        if client is not None:
            # While features are fitted here, the workers load what they will need.
            warm_workers(client)
        budget = search.limits
        seconds = search.seconds
        trials: dict[str, list[Any]] = {}
        asked: dict[str, Any] = {}
        if recipe.search is not None and not searches:
            budget = recipe.search.budget
            seconds = recipe.search.time
            asked = {"variants": recipe.search.variants, "optimizer": recipe.search.optimizer}
        if searches or recipe.search is not None:
            settings = SearchSettings(seconds=seconds, begun=begun, client=client, **asked)
            bounds = [option for option in search.given if option != "--pretrained"]
            bounds += [] if pictures.size is None else ["--size"]
            folder = local_place(place)
            recipe = chosen_recipe(
                recipe, folder, budget, settings, bounds, resume, n_jobs, data, search.network
            )
            trials = kept_trials(folder)
        result = run(recipe, place, data, n_jobs, resume, client=client, trials=trials)
        addresses = [] if client is None else sorted(client.nthreads())
    # 4) Say what came out.
    _say_figures(result.metrics, place.rstrip("/"))
    if addresses:
        say(f"workers      {len(addresses)}: {', '.join(addresses)}")


def _recipe_for_pictures(
    source: str,
    data: Path | None,
    pictures: OwnPictureOptions,
    search: SearchOptions,
    changes: list[str],
    jobs: int,
) -> Recipe:
    """Return the recipe for pictures, which a search changes; say what was found in them."""
    from visionshare.image_classifier.recipe_search import check_settings
    from visionshare.recipes.own_pictures import recipe_for_pictures
    from visionshare.recipes.stages.stored import names_storage

    given = ", ".join(search.given)
    if data is not None:
        accepted = f"nothing beside {source}, which is read from its own place"
        raise InputError("--data", str(data), accepted)
    if given and pictures.recipe is not None:
        accepted = f"the search: visionshare train {source} without --recipe"
        raise InputError(given, f"--recipe {pictures.recipe}", accepted)
    if given and names_storage(source):
        accepted = "pictures of this machine: a search reads them all, again and again"
        raise InputError(given, source, accepted)
    searches = pictures.recipe is None and not names_storage(source)
    if searches:
        check_settings(changes)
    own = recipe_for_pictures(source, pictures.checked(), changes, jobs, searches)
    for reason in own.reasons:
        say(reason)
    if not searches:
        say(own.base)
    return own.recipe


def _recipe_from(source: str, pictures: OwnPictureOptions, others: list[str]) -> Recipe:
    """Return the recipe of a classifier that learns on from pictures; say what is new."""
    from visionshare.recipes.own_pictures import recipe_from

    assert pictures.start is not None
    taken = ("--from", "--test-fraction", "--skip-broken", "--groups", "--refit", "--no-refit")
    refused = [option for option in pictures.given if option not in taken] + others
    if refused:
        accepted = f"{', '.join(taken[1:])} alone: all else is as in the earlier training"
        raise InputError("--from", f"beside {', '.join(refused)}", accepted)
    own = recipe_from(source, pictures.start, pictures.checked())
    for reason in (*own.reasons, own.base):
        say(reason)
    return own.recipe


def _recipe_of_pipeline(
    name: str, data: Path | None, given: list[str], changes: list[str]
) -> Recipe:
    """Return the recipe of a name or a file; options of pictures are refused."""
    from visionshare.recipes import load_recipe
    from visionshare.recipes.own_pictures import check_data_folder

    recipe = load_recipe(name, changes)
    if given:
        raise RecipeError(
            f"{', '.join(given)}: not used: {name!r} is a recipe; change its settings with --set. "
            "For pictures of your own: visionshare train FOLDER"
        )
    check_data_folder(recipe, data)
    if os.path.isdir(name):
        say(f"{name} is the pipeline of this name; the folder is ./{name}", err=True)
    return recipe


def _say_figures(figures: dict[str, Any], place: str) -> None:
    """Write what a user wants to know first of a run."""
    from visionshare.datasets.notices import notices_told

    for note in figures.get("notes", []):
        say(f"note         {note}")
        notices_told(note)
    answers = answer_lines(figures, "test_")
    if answers:
        say("\n".join([f"test         {answers[0]}", *answers[1:]]))
    elif figures["test_error_rate"] is None:
        say("test error   none: there are no test pictures")
    else:
        errors = figures["test_errors"]
        n = figures["test_images"]
        origin = " held out" if figures["test_origin"] == "held out" else ""
        rate = 100 * figures["test_error_rate"]
        say(f"test error   {rate:.2f} % ({errors} of {n}{origin})")
        warn_near_majority("test", errors, n, figures["majority_class"], figures["majority_error"])
    if "refit_images" in figures:
        say(
            f"refit        trained again on all {figures['refit_images']} pictures; the test "
            "error is of the classifier before that"
        )
    if "test_refused" in figures:
        n = figures["test_images"]
        share = 100 * figures["test_refused"] / n
        say(f'refused      {share:.2f} % of the test pictures as "unknown"')
    say(f"features     {figures['features']}")
    say(f"macs         {figures['macs']:,} multiply-accumulates per image")
    say(f"classifier   {os.path.join(place, 'classifier.safetensors')}")
    say(f"report       {os.path.join(place, 'report.html')}")


def warmup() -> None:
    """Compile all kernels now instead of during the first run.

    Example: visionshare warmup
    """
    import tempfile

    import numpy as np

    from visionshare import load
    from visionshare.columns import ArrayColumns
    from visionshare.generators.layers.deslant import Deslant
    from visionshare.generators.layers.network import Network
    from visionshare.generators.layers.templates import Templates
    from visionshare.generators.patches import PatchTemplates
    from visionshare.learners import FineTuning, ShareBoost, fine_tune
    from visionshare.machine.progress import stage

    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    of_bytes = rng.integers(0, 255, (40, 8, 8), np.uint8)
    of_floats = rng.random((40, 8, 8), np.float32)
    layers = [Deslant(), Templates(3, 3, pool=2, n_patches=500), Templates(9, 2, grid=2)]
    patches = PatchTemplates(3, 16, 2, (2.0,), n_patches=500)
    # Families, types of their columns, and heads of fine-tuning.
    kinds = [
        (patches, "float16", None),
        (patches, "float32", "products"),
        (Network(layers), "float32", "hidden"),
    ]
    with (
        stage("compiling", 2 * len(kinds)) as advance,
        tempfile.TemporaryDirectory() as folder,
    ):
        for images in (of_bytes, of_floats):
            for family, dtype, head in kinds:
                fitted = family.fit(images)
                columns = ArrayColumns.from_family(fitted, images, dtype)
                classifier = ShareBoost(rounds=2).fit(columns, labels).to_classifier(fitted)
                classifier.family.transform_columns(images, dtype=dtype)
                tuned = classifier
                if head is not None:
                    tuned = fine_tune(classifier, images, labels, FineTuning(epochs=1, head=head))
                # Arrays of a file are read-only, and have kernels of their own.
                for number, model in enumerate((classifier, tuned)):
                    file = f"{folder}/{number}.safetensors"
                    model.save(file)
                    written = load(file)
                    for part in (images[:1], images):
                        model.decision_function(part)
                        written.decision_function(part)
                advance(1)
    say("the kernels are compiled")
