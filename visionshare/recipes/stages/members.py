"""Classifiers of a run: one, or the mean of several members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from visionshare.classifier import CompactClassifier, averaged
from visionshare.generators import FeatureFamily
from visionshare.generators.union.family import blocks_of
from visionshare.machine.memory import check_fits
from visionshare.recipes.pools import read_pool
from visionshare.recipes.run import TrainingRun, fingerprint_of
from visionshare.recipes.schema import as_settings
from visionshare.recipes.stages.columns import make_columns
from visionshare.recipes.stages.estimates import learning_bytes
from visionshare.recipes.stages.images import (
    RunImages,
    preprocessing_of,
    search_images,
    validation_mask,
)
from visionshare.recipes.stages.learning import learn_classifier, make_learner
from visionshare.recipes.stages.tuning import fine_tuned


def learn_members(
    run: TrainingRun, images: RunImages, family: FeatureFamily | None = None
) -> CompactClassifier:
    """Return the mean of the recipe's members; a family that is given is that of candidates."""
    members = []
    for number in range(run.recipe.members):
        member = run.member(number)
        classifier = choose_features(member, images, family)
        classifier = replace(classifier, preprocessing=preprocessing_of(member.recipe))
        if member.recipe.fine_tuning is not None:
            with run.clock("fine-tuning"):
                classifier = fine_tuned(member, classifier, images)
        members.append(classifier)
    return averaged(members)


def choose_features(
    run: TrainingRun, images: RunImages, family: FeatureFamily | None = None
) -> CompactClassifier:
    """Return a classifier of the features that the learner chooses; columns are freed."""
    recipe = run.recipe
    classes = images.training.classes
    # 1) the family of candidates
    if family is None:
        with run.clock("features"):
            family = read_pool(recipe.features, recipe.seed).fit(images.originals)
    # 2) their columns
    searched = search_images(recipe, images)
    with run.clock("columns"):
        columns, features = make_columns(run, family, searched)
    itemsize = np.dtype(columns.dtype).itemsize
    check_fits(
        f"learning {len(classes)} classes from {len(searched)} images",
        learning_bytes(recipe, columns.shape, itemsize, len(classes)),
        "fewer rounds (learner.rounds), classes, features or images",
    )
    # 3) the learner
    metadata = {
        "pipeline": recipe.name,
        "recipe": as_settings(recipe),
        "training_data": fingerprint_of(images.pictures),
    }
    validation = None if recipe.early_exit is None else validation_mask(recipe, images)
    learner = make_learner(run)
    if "blocks" in learner.get_params():
        learner.set_params(blocks=list(blocks_of(features)))
    with run.clock("learning"):
        return learn_classifier(
            learner,
            columns,
            features,
            searched.labels,
            classes,
            metadata,
            validation,
            getattr(searched, "weights", None),
        )
