"""The rule of a recipe's classifier that refuses pictures of no class."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import cv2
import numpy as np

from visionshare.batch.pictures import read_picture
from visionshare.classifier import CompactClassifier, learn_unknown_rule
from visionshare.datasets.folders import iter_images, read_image
from visionshare.datasets.intake import as_rasters
from visionshare.errors import DataError
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.images import RunImages

_logger = logging.getLogger(__name__)

# Photographs that are a background, at most, and their longer side, in sides of an image.
_PHOTOGRAPHS = 200
_SIDES = 16


def with_unknown(
    run: TrainingRun, classifier: CompactClassifier, images: RunImages
) -> CompactClassifier:
    """Return the classifier with the rule that refuses pictures of no class."""
    section = run.recipe.unknown
    if section is None or images.calibrating is None:
        return classifier
    given = [] if images.unknown is None else [images.unknown]
    if section.pictures is not None:
        read = _readable(section.pictures, partial(read_picture, classifier))
        given.append(np.stack(read) if read else np.empty((0, *classifier.image_shape), np.uint8))
    background = None
    if section.background is not None:
        background = _readable(section.background, partial(_photograph, classifier), _PHOTOGRAPHS)
    given = [pictures for pictures in given if len(pictures)]
    rule = learn_unknown_rule(
        classifier,
        as_rasters(images.originals),
        as_rasters(images.calibrating.images),
        reject=section.reject,
        unknown=as_rasters(np.concatenate(given)) if given else None,
        background=background or None,
        unknown_label=section.label,
        n_jobs=run.jobs,
    )
    return replace(classifier, unknown=rule)


def _photograph(classifier: CompactClassifier, path: str) -> np.ndarray:
    """Return a photograph; large ones are shrunk, so that many have room."""
    picture = read_image(path, mode=classifier.picture_mode)
    factor = _SIDES * max(classifier.image_shape[:2]) / max(picture.shape[:2])
    if factor >= 1:
        return picture
    rows, columns = (max(1, round(side * factor)) for side in picture.shape[:2])
    return cv2.resize(picture, (columns, rows), interpolation=cv2.INTER_AREA)


def _readable(
    folder: str, read: Callable[[str], np.ndarray], most: int | None = None
) -> list[np.ndarray]:
    """Return the pictures of a folder that can be read."""
    pictures: list[np.ndarray] = []
    for path in islice(iter_images(Path(folder)), most):
        try:
            pictures.append(read(path))
        except DataError as error:
            # The training is done: one broken picture of many is no reason to lose it.
            _logger.warning("left out of the pictures of no class: %s", error)
    return pictures
