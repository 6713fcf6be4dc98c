"""Learning on: a classifier keeps its structure and features and learns from more pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier, averaged
from visionshare.errors import InputError, RecipeError
from visionshare.generators.union import UnionOfFamilies
from visionshare.learners.fine_tuning.heads import UNITS
from visionshare.recipes.folder import MEASURED, RESULTS
from visionshare.recipes.run import TrainingRun, fingerprint_of
from visionshare.recipes.schema import Recipe, as_settings
from visionshare.recipes.stages.images import RunImages
from visionshare.recipes.stages.members import learn_members
from visionshare.recipes.stages.tuning import fine_tuned

# Of the epochs and the rate of a training from the start.
_EPOCHS = 0.5
_FEWEST = 6
_RATE = 0.5


class Starts(NamedTuple):
    """What learns on: the classifier that was tested, and the one that was written."""

    tested: CompactClassifier
    written: CompactClassifier


def read_starts(recipe: Recipe) -> Starts | None:
    """Return what a recipe learns on from, checked; None where it begins anew."""
    if recipe.start is None:
        return None
    place = Path(recipe.start)
    file = place / RESULTS[0] if place.is_dir() else place
    written = CompactClassifier.load(file)
    measured = place / MEASURED
    starts = Starts(CompactClassifier.load(measured) if measured.is_file() else written, written)
    if recipe.teacher is not None or recipe.early_exit is not None:
        raise RecipeError("start: not with a teacher or early exits; train from the start")
    check_learns_on(recipe, written)
    return starts


def check_learns_on(recipe: Recipe, classifier: CompactClassifier) -> None:
    """Check that what a recipe fine-tunes can still move: whole numbers of few bits cannot."""
    if classifier.answer is not None:
        accepted = "a classifier of classes: others are learned from the start"
        raise InputError("start", "a classifier of other answers", accepted)
    for member in members_of(classifier) if recipe.fine_tuning is not None else ():
        member.family.check_tunable()


def learned_on(run: TrainingRun, before: CompactClassifier, images: RunImages) -> CompactClassifier:
    """Return a classifier that learned on from a run's images, with their classes."""
    recipe = run.recipe
    shape = images.training.images.shape[1:]
    if shape != before.image_shape:
        raise RecipeError(f"start: it takes images of {before.image_shape}, these are {shape}")
    # 1) without gradients all weights of the features are solved again
    if recipe.fine_tuning is None:
        single = replace(run, recipe=recipe.model_copy(update={"members": 1}))
        return learn_members(single, images, before.family)
    # 2) with them each member takes fewer and smaller steps from where it is
    members = members_of(with_classes(before, images.training.classes))
    shorter = recipe.model_copy(
        update={"members": len(members), "fine_tuning": _shorter(recipe.fine_tuning)}
    )
    learned = []
    for number, member in enumerate(members):
        own = replace(run, recipe=shorter).member(number)
        with run.clock("fine-tuning"):
            learned.append(fine_tuned(own, member, images))
    metadata = {
        **before.metadata,
        "pipeline": recipe.name,
        "recipe": as_settings(recipe),
        "training_data": fingerprint_of(images.pictures),
    }
    return replace(averaged(learned), metadata=metadata)


def _shorter(tuning: Any) -> Any:
    """Return the section [fine_tuning] of a training that goes on."""
    # Units are layers by now, and move as such.
    head = "linear" if tuning.head in UNITS else tuning.head
    epochs = max(2, min(_FEWEST, tuning.epochs), round(_EPOCHS * tuning.epochs))
    return tuning.model_copy(update={"epochs": epochs, "rate": _RATE * tuning.rate, "head": head})


def with_classes(classifier: CompactClassifier, classes: Sequence[str]) -> CompactClassifier:
    """Return a classifier of other classes: those that it knows keep their weights."""
    known = {name: i for i, name in enumerate(class_names(classifier.classes))}
    if list(known) == list(classes):
        return replace(classifier, classes=np.asarray(classes))
    # New ones begin with the mean of the others, which is nowhere the largest score.
    rows = [known.get(name) for name in classes]
    means = (classifier.weights.mean(axis=0), classifier.intercept.mean())
    weights = [means[0] if row is None else classifier.weights[row] for row in rows]
    intercept = [means[1] if row is None else classifier.intercept[row] for row in rows]
    return replace(
        classifier, weights=np.array(weights), intercept=np.array(intercept),
        classes=np.asarray(classes), path=(), exit_rule=None, unknown=None,
    )  # fmt: skip


def members_of(classifier: CompactClassifier) -> list[CompactClassifier]:
    """Return classifiers whose mean, by :func:`averaged`, a classifier is."""
    family = classifier.family
    if not isinstance(family, UnionOfFamilies) or "members" not in classifier.metadata:
        return [classifier]
    n = len(family.parts_)
    bare = replace(classifier, path=(), exit_rule=None, unknown=None)
    return [
        replace(bare, family=part, weights=n * bare.weights[:, family.part_ == number])
        for number, part in enumerate(family.parts_)
    ]
