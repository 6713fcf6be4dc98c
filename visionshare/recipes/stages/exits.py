"""Early exit in a recipe: where images may stop, learned from those that did not train."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from visionshare.batch.mapping import Mapper, map_here
from visionshare.classifier import CompactClassifier
from visionshare.classifier.exit_learning import exit_rule_of_values
from visionshare.datasets import StoredPictures
from visionshare.datasets.shards import Shard
from visionshare.machine.memory import check_fits
from visionshare.recipes.run import Run
from visionshare.recipes.stages.images import RunImages, validation_mask

__all__ = ["with_exits"]


def with_exits(run: Run, classifier: CompactClassifier, images: RunImages) -> CompactClassifier:
    """Return the classifier with the rule that the validation images give."""
    section = run.recipe.early_exit
    if section is None:
        return classifier
    mask = validation_mask(run.recipe, images)
    if images.stored is None:
        rows = np.flatnonzero(mask[: images.n_originals])
        validation = images.training.subset(rows)
        values = classifier.family.transform(validation.images, None, run.jobs)
        labels = validation.labels
    else:
        stored = images.stored.subset(mask)
        values, labels = _stored_values(run, classifier, stored), stored.labels
    truth = np.asarray(images.training.classes)[labels]
    rule = exit_rule_of_values(classifier, values, truth, **section.as_arguments())
    return replace(classifier, exit_rule=rule)


def _stored_values(run: Run, classifier: CompactClassifier, stored: StoredPictures) -> np.ndarray:
    """Return the features of pictures of storage, evaluated one file after the other."""
    needed = 4.0 * len(stored) * classifier.n_features
    what = "features of the images that show where others stop"
    check_fits(what, needed, "a smaller early_exit.fraction")
    mapper: Mapper = map_here
    if run.client is not None:
        from visionshare.distributed.mapping import ClusterMap

        mapper = ClusterMap(run.client)
    threads = run.jobs if run.client is None else 1
    made = (classifier.family, stored.reading, threads)
    return np.concatenate(list(mapper(_values_of, _together, made, stored.shards)))


def _together(*values: Any) -> tuple[Any, ...]:
    return values


def _values_of(given: tuple[Any, ...], shard: Shard) -> np.ndarray:
    """Return the features of a file's pictures, there where they are read."""
    family, reading, threads = given
    values: np.ndarray = family.transform(shard.images(reading, None, threads), None, threads)
    return values
