"""Early exit in a recipe: where images may stop, learned from those that did not train."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.classifier.exit_learning import exit_rule_of_values
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.images import RunImages, validation_mask


def with_exits(
    run: TrainingRun, classifier: CompactClassifier, images: RunImages
) -> CompactClassifier:
    """Return the classifier with the rule that the validation images give."""
    section = run.recipe.early_exit
    if section is None:
        return classifier
    mask = validation_mask(run.recipe, images)[: images.n_originals]
    validation = images.training.subset(np.flatnonzero(mask))
    values = classifier.family.transform(validation.images, None, run.jobs)
    truth = np.asarray(validation.classes)[validation.labels]
    rule = exit_rule_of_values(classifier, values, truth, **section.as_arguments())
    return replace(classifier, exit_rule=rule)
