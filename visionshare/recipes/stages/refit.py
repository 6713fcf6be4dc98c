"""The refit: the classifier that is written learns from all pictures, those that tested too."""

from __future__ import annotations

from dataclasses import replace

from visionshare.classifier import CompactClassifier
from visionshare.generators import FeatureFamily
from visionshare.machine.memory import check_fits
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.stages.images import RunImages, with_copies
from visionshare.recipes.stages.splitting import together


def all_pictures(run: TrainingRun, images: RunImages) -> RunImages:
    """Return the images of a run with the test pictures among those that train."""
    parts = [images.training.subset(slice(images.n_originals)), images.test]
    size = sum(part.images.nbytes for part in parts)
    check_fits("all pictures once more", size, "fewer or smaller images, or --no-refit")
    both = together(*parts)
    training = with_copies(both, run.recipe, run.jobs)
    none = images.test.subset(slice(0, 0))
    return replace(images, training=training, test=none, n_originals=len(both))


def kept_features(run: TrainingRun, measured: CompactClassifier) -> FeatureFamily | None:
    """Return the features that a refit keeps; None where it chooses and moves them again."""
    # Features that are chosen again may cost more than a budget allows.
    recipe = run.recipe
    if recipe.fine_tuning is not None or recipe.draws is not None or recipe.members > 1:
        return None
    return measured.family
