"""The rule of a recipe's classifier that refuses pictures of no class."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from visionshare.batch.pictures import read_picture
from visionshare.classifier import CompactClassifier, learn_unknown_rule
from visionshare.datasets.folders import iter_images
from visionshare.datasets.intake import as_rasters
from visionshare.errors import DataError
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.images import RunImages

_logger = logging.getLogger(__name__)


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
    given = [pictures for pictures in given if len(pictures)]
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
    read = []
    for path in iter_images(folder):
        try:
            read.append(read_picture(classifier, path))
        except DataError as error:
            # The training is done: one broken picture of many is no reason to lose it.
            _logger.warning("left out of the unknown pictures: %s", error)
    return np.stack(read) if read else np.empty((0, *classifier.image_shape), np.uint8)
