"""A fit that goes on from the one before: structure and features stay, images and classes join."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets.intake import Intake
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import InputError
from visionshare.image_classifier.trials import ProposalLearner
from visionshare.recipes import Recipe
from visionshare.recipes.reading import parse_values
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.learning_on import check_learns_on, learned_on
from visionshare.recipes.training import images_in_memory


def goes_on_from(model: Any) -> CompactClassifier | None:
    """Return the classifier that a fit goes on from, checked; None where it begins anew."""
    if not isinstance(model.warm_start, (bool, np.bool_)):
        raise InputError("warm_start", model.warm_start, "True or False")
    start: CompactClassifier | None = getattr(model, "classifier_", None)
    if not model.warm_start or start is None:
        return None
    if model.teacher is not None:
        raise InputError("teacher", model.teacher, "None, where warm_start goes on from a fit")
    check_learns_on(_recipe_of(start), start)
    return start


def intake_of(start: CompactClassifier | None) -> Intake | None:
    """Return how images become rasters of a classifier; None where that is still to be found."""
    if start is None or start.picture_size is None:
        return None
    n_channels = (*start.image_shape, 1)[2]
    values = start.values or TrainingValues()
    return Intake(start.picture_size, n_channels, start.preprocessing, values)


def learned_on_images(
    learner: ProposalLearner, start: CompactClassifier, classes: np.ndarray
) -> CompactClassifier:
    """Return a classifier that learned on from the images of a learner, with their classes."""
    shape = learner.images.images.shape[1:]
    if shape != start.image_shape:
        raise InputError("images", shape, f"{start.image_shape}, as in the fit before")
    # 1) classes are known by their numbers
    number = {label: f"{i}" for i, label in enumerate(classes.tolist())}
    names = [number.get(label, f"gone {i}") for i, label in enumerate(start.classes.tolist())]
    bare = replace(start, classes=np.array(names), exit_rule=None, unknown=None)
    # 2) the recipe of before, with the weights of these classes
    recipe = _recipe_of(start)
    weights = {"class_weight": learner.class_weight}
    sections = {name: getattr(recipe, name) for name in ("learner", "fine_tuning")}
    changes = {
        name: section.model_copy(update=weights)
        for name, section in sections.items()
        if hasattr(section, "class_weight")
    }
    with tempfile.TemporaryDirectory(prefix="visionshare-") as folder:
        run = TrainingRun(recipe.model_copy(update=changes), Path(folder), None, learner.n_jobs)
        learned = learned_on(run, bare, images_in_memory(run, learner.images))
    return replace(learned, temperature=start.temperature, preprocessing=start.preprocessing)


def _recipe_of(start: CompactClassifier) -> Recipe:
    values = start.metadata.get("recipe")
    if not isinstance(values, Mapping):
        accepted = "False: the fit before had features that no recipe names"
        raise InputError("warm_start", True, accepted)
    return parse_values({**values, "start": None})
