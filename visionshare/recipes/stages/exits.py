"""Early exit in a recipe: where images may stop, learned from those that did not train."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from visionshare.classifier import CompactClassifier, learn_exit_rule
from visionshare.recipes.run import Run
from visionshare.recipes.stages.images import RunImages, validation_mask

__all__ = ["with_exits"]


def with_exits(run: Run, classifier: CompactClassifier, images: RunImages) -> CompactClassifier:
    """Return the classifier with the rule that the validation images give.

    Parameters
    ----------
    run : Run
    classifier : CompactClassifier
        With a learning path.
    images : RunImages
    """
    section = run.recipe.early_exit
    if section is None:
        return classifier
    mask = validation_mask(run.recipe, images)[: images.n_originals]
    validation = images.training.subset(np.flatnonzero(mask))
    truth = np.asarray(validation.classes)[validation.labels]
    rule = learn_exit_rule(
        classifier, validation.images, truth, **section.as_arguments(), n_jobs=run.jobs
    )
    return replace(classifier, exit_rule=rule)
