"""What stages are about to need: bytes beside the images, estimated before they start."""

from __future__ import annotations

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.learners import FineTuning, bytes_per_image
from visionshare.recipes.schema import Recipe


def learning_bytes(recipe: Recipe, shape: tuple[int, int], itemsize: int, n_classes: int) -> float:
    """Return what a learner needs: columns it has chosen, scores, and samples of a screening."""
    m, d = shape
    learner = recipe.learner
    template = getattr(learner, "learner", None) or learner
    chosen = getattr(learner, "rounds", 1) + getattr(template, "n_backward", 0)
    needed = 8.0 * m * (min(chosen, d) + 8 * n_classes)
    if learner.kind == "dense":
        # The columns twice, and the smaller of their two products.
        needed += 8.0 * (2 * m * d + 3 * min(m, d) ** 2)
    name = learner.search_name
    if name == "sampled":
        draws = recipe.draws.n if recipe.draws is not None else 500
        needed += 2 * 4.0 * m * draws
    elif name == "stumps":
        needed += 12.0 * d
    elif name == "screened":
        search = getattr(template, "search", None)
        fraction = getattr(search, "fraction", 0.1)
        most = getattr(search, "max_bytes", 2 << 30)
        needed += 1.2 * min(fraction * m * d * itemsize, most)
    return needed


def tuning_bytes(
    classifier: CompactClassifier, settings: FineTuning, images: np.ndarray, deformed: bool
) -> float:
    """Return what fine-tuning needs."""
    # The layers of a batch, and an epoch's copies of the images.
    batch = min(settings.batch, len(images)) * bytes_per_image(classifier.family)
    # The copies of an epoch are made while the last epoch's are still in memory.
    return batch + (2.0 * images.nbytes if deformed else 0)
