"""From one's own pictures to a recipe that fits them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from visionshare.answers import checked_period
from visionshare.class_labels import class_names, quoted
from visionshare.classifier import CompactClassifier
from visionshare.datasets.catalog import list_datasets, uses_folder
from visionshare.datasets.pictures.preparation import Preparation, propose_preparation
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.pictures.splits import TEST_FRACTION
from visionshare.datasets.pictures.survey import survey_pictures
from visionshare.datasets.readers.groups import picture_groups
from visionshare.datasets.readers.labels import TRAIN
from visionshare.datasets.readers.picture_set import PictureSet
from visionshare.datasets.readers.registry import find_pictures
from visionshare.datasets.readers.targets import Target, target_of
from visionshare.datasets.shards import opened_partition, partitions_of
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.files.bundled import bundled
from visionshare.recipes.folder import RESULTS
from visionshare.recipes.reading import load_recipe, parse_values
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.stored import names_storage, split_files
from visionshare.recipes.teachers import SELF

# Images that pass in fine-tuning, in all, and epochs at least and at most.
_PASSES = 200_000
_EPOCHS = (10, 150)
# Fewer images than these are seen in smaller batches: the steps count.
_FEW = 4000
_BATCH = 32


@dataclass(frozen=True)
class PictureOptions:
    """What a user says of pictures beside where they are."""

    recipe: str | None = None
    size: tuple[int, int] | None = None
    color: bool | None = None
    test_fraction: float | None = None
    balanced: bool = False
    skip_broken: bool = False
    reject: float | None = None
    unknown: Path | None = None
    background: Path | None = None
    groups: str | None = None
    target: str | None = None
    periodic: float | None = None
    labels: str | None = None

    @property
    def label_columns(self) -> list[str] | None:
        """The columns of several labels."""
        if self.labels is None:
            return None
        return [name.strip() for name in self.labels.split(",") if name.strip()]

    refit: bool | None = None


@dataclass(frozen=True)
class OwnPictures:
    """A recipe for pictures, and why it is that one."""

    recipe: Recipe
    reasons: tuple[str, ...]
    base: str


def _target(options: PictureOptions) -> Target | None:
    """Return the columns of values or of several labels that a user names, checked."""
    checked_period(options.periodic, "--periodic")
    if options.target is None and options.periodic is not None:
        raise InputError("--periodic", options.periodic, "beside --target COLUMN")
    labels = options.label_columns
    asked = [name for name in ("target", "labels") if getattr(options, name) is not None]
    for option in ("reject", "balanced", *asked[1:]):
        if asked and getattr(options, option):
            raise InputError(f"--{option}", getattr(options, option), f"not beside --{asked[0]}")
    if labels == []:
        raise InputError("--labels", options.labels, "a column, or several with commas between")
    return target_of(options.target, options.periodic, labels)


def names_pictures(name: str) -> bool:
    """Return whether what a user says is a path of pictures and no name or file of a recipe."""
    # A bundled recipe goes before a folder of its name, unless it has no images of its own;
    # ``./NAME`` and ``NAME/`` are the folder.
    if names_storage(name):
        return True
    if not os.path.exists(name) or name.lower().endswith(".toml"):
        return False
    return name not in bundled("pipelines") or not load_recipe(name).data.source


def recipe_for_pictures(
    source: str,
    options: PictureOptions | None = None,
    settings: Sequence[str] = (),
    jobs: int = 1,
    searches: bool = False,
) -> OwnPictures:
    """Return a recipe that trains on pictures of a folder or a file, and why it is that one."""
    options = PictureOptions() if options is None else options
    fraction = options.test_fraction
    if fraction is not None and not 0 <= fraction < 1:
        raise InputError("--test-fraction", fraction, "a number from 0 to below 1")
    if options.reject is not None and not 0 < options.reject < 1:
        raise InputError("--reject", options.reject, "a share above 0 and below 1, such as 0.01")
    for name, folder in (("--unknown", options.unknown), ("--background", options.background)):
        if folder is not None and options.reject is None:
            raise InputError(name, str(folder), "beside --reject 0.01")
        if folder is not None and not folder.is_dir():
            raise InputError(name, str(folder), "a folder of pictures")
    if options.recipe is not None:
        load_recipe(options.recipe)
    if names_storage(source):
        if _target(options) is not None:
            raise InputError("--target, --labels", source, "pictures of this machine")
        return _recipe_for_storage(source, options, settings, jobs)
    pictures = find_pictures(source, _target(options))
    if len(pictures.classes) < 2:
        given = pictures.classes[0] if pictures.classes else "none"
        raise DataError(f"{source}: one class ({given}); a classifier needs two at least")
    if options.groups is not None:
        # What is not accepted ends here.
        picture_groups(source, pictures, options.groups, "--groups")
    if options.test_fraction is not None and pictures.has_test:
        accepted = f"nothing: {source} has test pictures of its own"
        raise InputError("--test-fraction", options.test_fraction, accepted)
    if options.refit and fraction == 0:
        raise InputError(
            "--refit", "--test-fraction 0", "pictures that are held out: here all train"
        )
    made = _prepared(pictures, source, options, jobs)
    if searches and pictures.n_validation and not pictures.has_test:
        # The pictures for validation choose among trials: others have to test.
        fraction = TEST_FRACTION if fraction is None else fraction
        options = replace(options, test_fraction=fraction)
    n = len(pictures) if pictures.roles is None else int((pictures.roles == TRAIN).sum())
    n = n if pictures.has_test else round((1 - TEST_FRACTION) * n)
    base = options.recipe or choose_recipe(made)
    changes = _changes(source, pictures, made, options, load_recipe(base), n)
    # By default it learns from all where it was this program that held some out.
    holds_out = not pictures.has_test and fraction != 0
    holds_out &= fraction is not None or not pictures.n_validation
    changes["refit"] = holds_out if options.refit is None else options.refit
    why = "" if options.recipe else f": the one for {_KINDS.get(base, base)}"
    reasons = (*_reasons(pictures, made, options), *_of_validation(pictures, options, searches))
    recipe = load_recipe(base, settings, changes)
    if recipe.teacher is not None and recipe.teacher.source != SELF:
        if options.refit:
            accepted = "--teacher self: other teachers see the training pictures alone"
            raise InputError("--refit", f"--teacher {recipe.teacher.source}", accepted)
        recipe = recipe.model_copy(update={"refit": False})
    return OwnPictures(recipe, reasons, f"recipe {base}{why}")


def recipe_from(source: str, start: str, options: PictureOptions) -> OwnPictures:
    """Return the recipe by which a classifier learns on from pictures."""
    place = Path(start)
    before = CompactClassifier.load(place / RESULTS[0] if place.is_dir() else place)
    values = before.metadata.get("recipe")
    if not isinstance(values, Mapping):
        raise InputError("--from", start, "a classifier that `visionshare train` wrote")
    if before.answer is not None:
        accepted = "a classifier of classes: values and several labels are learned from the start"
        raise InputError("--from", start, accepted)
    # 1) the pictures
    if names_storage(source):
        raise InputError("--from", start, "nothing beside pictures in storage")
    own = recipe_for_pictures(source, replace(options, recipe="digits"))
    pictures = find_pictures(source)
    # 2) what is said of them, in the recipe of before
    kept = ("height", "width", "mode", "fit")
    recipe = parse_values({**values, "start": start, "name": own.recipe.name})
    prepared = {name: getattr(recipe.data, name) for name in kept}
    data = type(recipe.data)(**{**own.recipe.data.model_dump(), **prepared})
    names = class_names(before.classes)
    new = [name for name in pictures.classes if name not in names]
    gone = [name for name in names if name not in pictures.classes]
    changes = {
        "data": data,
        "refit": own.recipe.refit and recipe.early_exit is None,
        "description": f"{recipe.description}, learned on",
    }
    reasons = [f"{len(pictures)} pictures of {len(pictures.classes)} classes"]
    reasons += [f"new classes: {quoted(new)}"] if new else []
    reasons += [f"classes without pictures, which are left out: {quoted(gone)}"] if gone else []
    return OwnPictures(
        recipe.model_copy(update=changes), tuple(reasons), f"learning on from {start}"
    )


def _prepared(
    pictures: PictureSet, source: str, options: PictureOptions, jobs: int
) -> Preparation | None:
    """Return how pictures are prepared; None where they are arrays to be taken as they are."""
    survey = survey_pictures(pictures, jobs)
    if survey.broken and not options.skip_broken:
        # Some headers are broken: reading all pictures counts broken pixels as well.
        read_pictures(pictures, (1, 1), n_jobs=jobs)
    try:
        return propose_preparation(
            pictures, size=options.size, color=options.color, sizes=survey.sizes
        )
    except DataError as error:
        if pictures.kind == "files":
            raise DataError(f"{source}: {error}") from None
        # Arrays of vectors or of other numbers are taken as they are.
        return None


def _recipe_for_storage(
    source: str, options: PictureOptions, settings: Sequence[str], jobs: int
) -> OwnPictures:
    """Return the recipe for pictures that stay in storage: their first file says what it needs."""
    if options.refit:
        raise InputError("--refit", source, "pictures of this machine")
    if options.test_fraction is not None:
        accepted = 'nothing: files with the word "test" in their names are the test set'
        raise InputError("--test-fraction", options.test_fraction, accepted)
    first = partitions_of(split_files(source)[0][0])[0]
    with opened_partition(first) as partition:
        pictures = partition.pictures
        made = _prepared(pictures, first, options, jobs)
    base = options.recipe or choose_recipe(made)
    # How long it learns is the recipe's: of how many pictures there are a file says nothing.
    named = replace(options, recipe=base)
    changes = _changes(source, pictures, made, named, load_recipe(base), len(pictures))
    changes["description"] = f"{base} on {source}"
    reasons = (f"prepared as the pictures of {first}", *_reasons(pictures, made, options)[1:])
    return OwnPictures(load_recipe(base, settings, changes), reasons, f"recipe {base}")


def choose_recipe(made: Preparation | None) -> str:
    """Return the name of the bundled recipe for pictures that are prepared so."""
    return "photos" if made is not None and made.kind == "photos" else "glyphs"


def _changes(
    source: str,
    pictures: PictureSet,
    made: Preparation | None,
    options: PictureOptions,
    base: Recipe,
    n: int,
) -> dict[str, Any]:
    """Return what pictures change in a recipe."""
    # A folder may have the name of a data set of the catalog.
    path = os.path.join(os.curdir, source) if source in list_datasets() else source
    data: dict[str, Any] = {"source": path, "cut": None, "fonts": None, "classes": None}
    data |= {"skip_broken": options.skip_broken, "test_fraction": options.test_fraction}
    if options.groups is not None:
        data["groups"] = options.groups
    if options.target is not None:
        data |= {"target": options.target, "period": options.periodic}
    if options.labels is not None:
        data["labels"] = options.label_columns
    changes: dict[str, Any] = {"name": _name_of(source), "data": data}
    changes["description"] = f"{base.name} on {pictures.name}"
    if made is not None:
        data |= {"height": made.size[0], "width": made.size[1], "mode": made.mode, "fit": None}
        changes["preprocessing"] = made.preprocessing.to_values()
    else:
        data |= {"mode": None}
    turns = made is None or made.mode == "gray" or options.target is not None
    if base.deformations is not None and turns:
        # A mirrored letter is another one; what gray pictures show may be letters.
        changes["deformations"] = {"flip": 0.0}
    if options.reject is not None:
        given = {"pictures": options.unknown, "background": options.background}
        folders = {name: str(folder) for name, folder in given.items() if folder is not None}
        changes["unknown"] = {"reject": options.reject, **folders}
    tuning: dict[str, Any] = {}
    if base.fine_tuning is not None and options.recipe is None:
        tuning = {"epochs": min(max(_EPOCHS[0], _PASSES // max(1, n)), _EPOCHS[1])}
        if n < _FEW:
            tuning["batch"] = _BATCH
    if options.balanced:
        if "class_weight" not in type(base.learner).model_fields:
            accepted = f"a recipe whose learner takes weights of classes, not {base.learner.kind}"
            raise InputError("--balanced", True, accepted)
        changes["learner"] = {"class_weight": "balanced"}
        if base.fine_tuning is not None:
            tuning["class_weight"] = "balanced"
    if tuning:
        changes["fine_tuning"] = tuning
    return changes


def _reasons(
    pictures: PictureSet, made: Preparation | None, options: PictureOptions
) -> tuple[str, ...]:
    shown = f"of {len(pictures.classes)} classes"
    if pictures.answers is not None and options.labels is not None:
        shown = f"with any of {len(pictures.answers.rule.classes)} labels"
    elif pictures.answers is not None:
        low = pictures.answers.truth.min()
        high = pictures.answers.truth.max()
        shown = f"with {options.target} from {low:g} to {high:g}"
    parts = f"{len(pictures)} pictures {shown}"
    prepared = () if made is None else made.reasons
    balanced = ("balanced: each class has the same weight",) if options.balanced else ()
    return (parts, *prepared, *balanced)


def _of_validation(
    pictures: PictureSet, options: PictureOptions, searches: bool
) -> tuple[str, ...]:
    """Return what becomes of the pictures named for validation."""
    n = pictures.n_validation
    if not n:
        return ()
    if searches:
        return (f"{n} validation pictures are used to compare trials, not for training",)
    if pictures.has_test or options.test_fraction is not None:
        return (f"{n} validation pictures are not used: a recipe without a search has no trials",)
    return (f"no test pictures: the {n} validation pictures are the test set",)


_KINDS = {"photos": "photos and textures", "glyphs": "characters and drawings"}


def _name_of(source: str) -> str:
    """Return the name of a recipe, and of its folder of results, from a path."""
    stem = Path(os.path.abspath(source)).name.split(".")[0]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem.encode("ascii", "replace").decode())
    return name.strip("-._")[:100] or "pictures"


def check_data_folder(recipe: Recipe, data: Path | None) -> None:
    """See that a folder of data sets that a user gives is one that the recipe reads."""
    if data is None:
        return
    source = recipe.data.source
    if source in list_datasets() and uses_folder(source, data):
        return
    if source in list_datasets() and not _has_pictures(data):
        # A folder of data sets that has not this one: reading says where it was searched.
        from visionshare.datasets import dataset_info

        if dataset_info(source).kind != "bundled":
            return
    hint = f". To train on the pictures in {data}: visionshare train {data}"
    raise RecipeError(
        f"--data {data}: not used: {recipe.name!r} trains on {source!r}, which is not read from "
        f"there{hint}"
    )


def _has_pictures(folder: Path) -> bool:
    try:
        find_pictures(folder)
    except DataError:
        return False
    return True
