"""Classifiers of a run: one, the mean of several members, and their teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier, averaged
from visionshare.files.durable import remove_folder
from visionshare.generators.sources.scores import LinearSource
from visionshare.machine.memory import check_fits
from visionshare.recipes.run import Clock, Run, fingerprint_of
from visionshare.recipes.schema import Recipe, as_settings
from visionshare.recipes.stages.columns import make_columns
from visionshare.recipes.stages.estimates import learning_bytes
from visionshare.recipes.stages.family import fitted_family
from visionshare.recipes.stages.images import (
    RunImages,
    preprocessing_of,
    search_images,
    validation_mask,
)
from visionshare.recipes.stages.learning import learn_classifier, make_learner
from visionshare.recipes.stages.sparsification import sparsified
from visionshare.recipes.stages.tuning import fine_tuned

__all__ = ["choose_features", "learn_members", "learn_teacher", "teacher_recipe"]


def learn_members(
    run: Run,
    images: RunImages,
    sources: Sequence[LinearSource] = (),
    teacher: CompactClassifier | None = None,
) -> CompactClassifier:
    """Return the classifier whose scores are the mean of those of the recipe's members."""
    members = []
    for number in range(run.recipe.members):
        member = run.member(number)
        classifier = choose_features(member, images, sources)
        if member.recipe.sparsify is not None:
            with run.clock("sparsification"):
                classifier = sparsified(member, classifier, images.originals)
        classifier = replace(classifier, preprocessing=preprocessing_of(member.recipe))
        if member.recipe.fine_tuning is not None:
            with run.clock("fine-tuning"):
                classifier = fine_tuned(member, classifier, images, teacher)
        members.append(classifier)
    return averaged(members)


def choose_features(
    run: Run, images: RunImages, sources: Sequence[LinearSource] = ()
) -> CompactClassifier:
    """Return a classifier of the features that the learner chooses; columns are freed."""
    recipe, training = run.recipe, images.training
    with run.clock("features"):
        family = fitted_family(recipe, images, sources)
    searched = search_images(recipe, images)
    with run.clock("columns"):
        columns, features = make_columns(run, family, searched)
    itemsize = np.dtype(columns.dtype).itemsize
    needed = learning_bytes(recipe, columns.shape, itemsize, len(training.classes))
    m, k = len(searched), len(training.classes)
    check_fits(
        f"learning {k} classes from {m} images",
        needed,
        "fewer rounds (learner.rounds), classes, features or images",
    )
    metadata = {
        "pipeline": recipe.name,
        "recipe": as_settings(recipe),
        "training_data": fingerprint_of(images.pictures),
    }
    validation = None if recipe.early_exit is None else validation_mask(recipe, images)
    with run.clock("learning"):
        classifier = learn_classifier(
            make_learner(run),
            columns,
            features,
            searched.labels,
            training.classes,
            metadata,
            validation,
        )
    return classifier


def teacher_recipe(recipe: Recipe) -> Recipe | None:
    """Return the recipe of the teachers; None without a teacher."""
    # Settings missing in ``[teacher]`` are those of the recipe; the seed is the next one.
    part = recipe.teacher
    if part is None:
        return None
    changes: dict[str, Any] = {"members": part.members, "seed": recipe.seed + 1, "teacher": None}
    # Teachers need not be small.
    changes["quantization"] = None
    for name in ("features", "learner", "fine_tuning"):
        section = getattr(part, name)
        if section is not None:
            given = {key: getattr(section, key) for key in section.model_fields_set}
            changes[name] = getattr(recipe, name).model_copy(update=given)
    return recipe.model_copy(update=changes)


def learn_teacher(
    run: Run, images: RunImages, sources: Sequence[LinearSource] = ()
) -> CompactClassifier | None:
    """Return the teacher of the fine-tuning; a resumed run finds it in the work folder."""
    recipe = teacher_recipe(run.recipe)
    if recipe is None:
        return None
    file = run.work / "teacher.safetensors"
    if file.is_file():
        return CompactClassifier.load(file)
    # Its seconds are those of one stage of the run.
    teaching = replace(run, recipe=recipe, work=run.work / "teacher", clock=Clock())
    with run.clock("teacher"):
        teacher = learn_members(teaching, images, sources)
    teacher.save(file)
    remove_folder(teaching.work)
    return teacher
