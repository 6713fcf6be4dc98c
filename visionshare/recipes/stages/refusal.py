"""Pictures for a recipe's rule of refusal: which ones calibrate it, and which are of no class."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from visionshare.classifier.unknown_learning import FEWEST
from visionshare.datasets import ImageSet
from visionshare.datasets.folders import iter_images
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError, RecipeError
from visionshare.recipes.schema import Recipe

# The part of the training pictures that calibrates, and how many at most. Of few pictures it is
# larger, up to the largest, until there are enough.
_FRACTION = 0.1
_MOST = 2000
_LARGEST = 0.3
_ENOUGH = 40
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
    """Return pictures that train, test, validate, calibrate, and are of the unknown class."""
    section = recipe.unknown
    label = section.label if section is not None else ""
    for name, option in (("pictures", "--unknown"), ("background", "--background")):
        folder = getattr(section, name, None)
        if folder is not None and not (os.path.isdir(folder) and any(iter_images(Path(folder)))):
            raise RecipeError(f"unknown.{name} ({option}): {folder}: no folder of pictures")
    unknown = None
    if label in training.classes:
        # A folder of this name is no class.
        unknown = training.images[training.labels == training.classes.index(label)]
        known = [name for name in training.classes if name != label]
        if len(known) < 2:
            raise RecipeError(f"one class beside {label!r}; a classifier needs two at least")
        training = training.of_classes(known)
        test = test.of_classes(known)
        compared = None if compared is None else compared.of_classes(known)
    mask = calibrating_mask(training, recipe.seed)
    calibrating = training.subset(np.flatnonzero(mask))
    return training.subset(np.flatnonzero(~mask)), test, compared, calibrating, unknown
