"""A teacher in a recipe: learned first or read, and what it says of the pictures of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets import Preprocessing
from visionshare.datasets.intake import as_rasters
from visionshare.errors import RecipeError
from visionshare.files.durable import remove_folder
from visionshare.recipes.reading import load_recipe
from visionshare.recipes.run import Clock, TrainingRun
from visionshare.recipes.schema import Recipe
from visionshare.recipes.sections import section_of
from visionshare.recipes.stages.images import RunImages, prepare_images, preprocessing_of
from visionshare.recipes.stages.members import learn_members
from visionshare.recipes.teachers import SELF, TaughtRun, joined, taught_images


def with_teacher(run: TrainingRun, images: RunImages) -> RunImages:
    """Return the images of a run with a teacher, and after them those without a class."""
    part = run.recipe.teacher
    if part is None:
        return images
    with run.clock("teacher"):
        images = told(run, images)
        teacher: Any = None
        unlabeled = images.unlabeled
        if part.source == SELF:
            # It sees the very copies of each epoch.
            teacher = _learned_self(run, images)
            if unlabeled is not None:
                rasters = as_rasters(unlabeled.images)
                scores = teacher.decision_function(rasters, run.jobs)
                unlabeled = replace(unlabeled, labels=np.argmax(scores, axis=1))
    training = images.training if unlabeled is None else joined([images.training, unlabeled])
    teacher = training.taught if teacher is None else teacher
    note = f"taught by {part.source!r} ({run.clock.seconds['teacher']:.0f} s)"
    if unlabeled is not None:
        note += f", also of {len(unlabeled)} copies and pictures without a class"
    return replace(
        images,
        training=training,
        n_originals=len(training),
        unlabeled=None,
        teacher=teacher,
        notes=(*images.notes, note),
    )


def told(run: TrainingRun, images: RunImages) -> RunImages:
    """Return the images with the probabilities that a given teacher says."""
    # A teacher that takes pictures of another size, or prepares them in another way, is shown the
    # pictures of the recipe's data as it takes them.
    part = run.recipe.teacher
    training = images.training
    if part is None or part.source == SELF or training.taught is not None:
        return images
    if training.images.ndim == 2:
        raise RecipeError("teacher: not with vectors; it sees pictures")

    def view(shape: tuple[int, ...], steps: Preprocessing) -> tuple[Any, Any]:
        seen = _seen(run, images, shape, steps)
        others = None if seen.unlabeled is None else as_rasters(seen.unlabeled.images)
        return as_rasters(seen.training.images), others

    weights = getattr(run.recipe.learner, "class_weight", None)
    asked = TaughtRun(weights, run.recipe.seed, run.jobs, preprocessing_of(run.recipe))
    labeled = (training, images.unlabeled)
    training, unlabeled = taught_images(part, labeled, view, training.classes, asked)
    return replace(images, training=training, unlabeled=unlabeled)


def _seen(
    run: TrainingRun, images: RunImages, shape: tuple[int, ...], steps: Preprocessing
) -> RunImages:
    """Return the pictures of a run as a teacher takes them."""
    recipe = run.recipe
    if images.training.images.shape[1:] == shape and preprocessing_of(recipe) == steps:
        return images
    mode = "color" if shape[2:] == (3,) else "gray"
    size = {"height": shape[0], "width": shape[1], "mode": mode, "fit": "resize"}
    changes = {
        "data": type(recipe.data)(**{**recipe.data.model_dump(exclude_unset=True), **size}),
        "preprocessing": section_of(Preprocessing)(**steps.to_values()),
        "deformations": None,
    }
    seen = prepare_images(replace(run, recipe=recipe.model_copy(update=changes)))
    if not np.array_equal(seen.training.labels, images.training.labels):
        raise RecipeError(
            "teacher: it takes pictures of another size, and some are copies of each other at one "
            "size alone; remove copies, or name test pictures (a folder test/)"
        )
    return seen


def larger_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe of the teacher "self": wider layers, floats, and the next seed."""
    part = recipe.teacher
    assert part is not None
    if part.recipe is not None:
        # What it sees are the pictures of the run, prepared alike.
        kept = {name: getattr(recipe, name) for name in ("data", "preprocessing", "store", "seed")}
        recipe = load_recipe(part.recipe).model_copy(update=kept)

    def wider(number: int | None) -> int | None:
        return None if number is None else round(number * part.width)

    def changed(section: Any, *names: str) -> Any:
        if section is None:
            return None
        known = [name for name in names if hasattr(section, name)]
        return section.model_copy(update={n: wider(getattr(section, n)) for n in known})

    parameters = dict(recipe.features.parameters)
    if "n_templates" in parameters:
        parameters["n_templates"] = wider(parameters["n_templates"])
    if "layers" in parameters:
        parameters["layers"] = [
            {**layer, **{n: wider(v) for n, v in layer.items() if n == "n_templates"}}
            for layer in parameters["layers"]
        ]
    return recipe.model_copy(
        update={
            "members": part.members,
            "seed": recipe.seed + 1,
            "teacher": None,
            "quantization": None,
            "features": recipe.features.model_copy(update={"parameters": parameters}),
            "learner": changed(recipe.learner, "rounds"),
            "fine_tuning": changed(recipe.fine_tuning, "n_units", "max_features", "max_products"),
        }
    )


def _learned_self(run: TrainingRun, images: RunImages) -> CompactClassifier:
    """Return the mean of larger classifiers of the run's pictures; a resumed run finds it."""
    file = run.work / "teacher.safetensors"
    if file.is_file():
        return CompactClassifier.load(file)
    recipe = larger_recipe(run.recipe)
    work = run.work / "teacher"
    teaching = replace(run, recipe=recipe, work=work, clock=Clock())
    teacher = learn_members(teaching, replace(images, unlabeled=None))
    work.mkdir(parents=True, exist_ok=True)
    teacher.save(file)
    remove_folder(work)
    return teacher
