"""Pictures of no class in a recipe: who calibrates, which are unknown, and the rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from visionshare.batch.pictures import read_picture
from visionshare.classifier import CompactClassifier, learn_unknown_rule
from visionshare.classifier.unknown_learning import FEWEST
from visionshare.datasets import ImageSet
from visionshare.datasets.folders import iter_images
from visionshare.datasets.intake import as_rasters
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError, RecipeError
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import Recipe

if TYPE_CHECKING:
    from visionshare.recipes.stages.images import RunImages

# The part of the training pictures that calibrates, and how many at most. Of few pictures it is
# larger, up to the largest, until there are enough.
_FRACTION, _MOST = 0.1, 2000
_LARGEST, _ENOUGH = 0.3, 40
_Parts = tuple[ImageSet, ImageSet, "ImageSet | None", ImageSet, "np.ndarray | None"]


def calibrating_mask(images: ImageSet, seed: int) -> np.ndarray:
    """Return which training pictures do not train: they say how strange known pictures look."""
    if images.images.ndim < 3 or images.images.dtype != np.uint8:
        raise InputError("reject", "examples that are no pictures", "pictures, or None")
    n = len(images)
    fraction = min(max(_FRACTION, min(_LARGEST, _ENOUGH / n)), _MOST / n)
    mask = stratified_mask(images.labels, fraction, seed, images.kept_together)
    if mask.sum() < FEWEST:
        given = f"{n} training pictures"
        raise InputError("reject", given, f"more: {FEWEST} of them calibrate, at most 30 %")
    return mask


def refusal_parts(
    recipe: Recipe, training: ImageSet, test: ImageSet, compared: ImageSet | None
) -> _Parts:
    """Return pictures that train, test, validate and calibrate, and those of the unknown class."""
    label = recipe.unknown.label if recipe.unknown is not None else ""
    unknown = None
    if label in training.classes:
        # A folder of this name is no class.
        unknown = training.images[training.labels == training.classes.index(label)]
        known = [name for name in training.classes if name != label]
        if len(known) < 2:
            raise RecipeError(f"one class beside {label!r}; a classifier needs two at least")
        training, test = training.of_classes(known), test.of_classes(known)
        compared = None if compared is None else compared.of_classes(known)
    mask = calibrating_mask(training, recipe.seed)
    calibrating = training.subset(np.flatnonzero(mask))
    return training.subset(np.flatnonzero(~mask)), test, compared, calibrating, unknown


def with_unknown(
    run: TrainingRun, classifier: CompactClassifier, images: RunImages
) -> CompactClassifier:
    """Return the classifier with the rule that refuses pictures of no class."""
    section = run.recipe.unknown
    if section is None or images.calibrating is None:
        return classifier
    given = [] if images.unknown is None else [images.unknown]
    if section.pictures is not None:
        given.append(_pictures_of(classifier, Path(section.pictures)))
    rule = learn_unknown_rule(
        classifier,
        as_rasters(images.originals),
        as_rasters(images.calibrating.images),
        reject=section.reject,
        unknown=as_rasters(np.concatenate(given)) if given else None,
        unknown_label=section.label,
        n_jobs=run.jobs,
    )
    return replace(classifier, unknown=rule)


def _pictures_of(classifier: CompactClassifier, folder: Path) -> np.ndarray:
    """Return the unknown pictures of a folder, as the classifier takes them."""
    pictures = list(iter_images(folder)) if folder.is_dir() else []
    if not pictures:
        raise RecipeError(f"unknown.pictures: {folder}: no folder of pictures")
    return np.stack([read_picture(classifier, path) for path in pictures])
