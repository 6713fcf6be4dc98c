"""The rule of a recipe's classifier that refuses pictures of no class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from visionshare.batch.pictures import read_picture
from visionshare.classifier import CompactClassifier, learn_unknown_rule
from visionshare.datasets.folders import iter_images
from visionshare.datasets.intake import as_rasters
from visionshare.errors import RecipeError
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.images import RunImages


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
