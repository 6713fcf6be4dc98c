"""Sparsification in a recipe: fewer features, drawn in proportion to their weights."""

from __future__ import annotations

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.learners.sparsification import sparsify
from visionshare.recipes.run import Run

__all__ = ["sparsified"]


def sparsified(run: Run, classifier: CompactClassifier, images: np.ndarray) -> CompactClassifier:
    """Return the classifier with the features that the recipe's draws leave."""
    section = run.recipe.sparsify
    if section is None:
        return classifier
    scales = None
    if section.scaled:
        scales = np.abs(classifier.family.transform(images, None, run.jobs)).max(axis=0)
    return sparsify(
        classifier, **section.as_arguments(), random_state=run.recipe.seed, scales=scales
    )
