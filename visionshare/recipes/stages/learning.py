"""The learner's stage: from columns and labels to a compact classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.learners.class_weights import by_number
from visionshare.recipes.run import TrainingRun


def make_learner(run: TrainingRun) -> Any:
    """Return the recipe's learner, unfitted."""
    learner = run.recipe.learner.build(
        checkpoint=run.work / "rounds", n_jobs=run.jobs, random_state=run.recipe.seed
    )
    deformations = run.recipe.deformations
    if deformations is not None and hasattr(learner, "copies"):
        learner.set_params(copies=deformations.copies)
    return learner


def learn_classifier(
    learner: Any,
    columns: Any,
    features: Any,
    labels: np.ndarray,
    names: Sequence[str],
    metadata: dict[str, Any] | None = None,
    validation: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> CompactClassifier:
    """Return the classifier that a learner finds."""
    given = {"validation": validation, "sample_weight": sample_weight}
    options = {name: value for name, value in given.items() if value is not None}
    weights = getattr(learner, "class_weight", None)
    if isinstance(weights, Mapping):
        learner.set_params(class_weight=by_number(weights, names))
    learner.fit(columns, labels, **options)
    named = dict(enumerate(names))
    return learner.to_classifier(features, named, metadata)
