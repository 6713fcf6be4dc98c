"""Fine-tuning in a recipe: which images each epoch sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.generators.quantized.tuning import check_quantizable
from visionshare.learners import FineTuning, fine_tune
from visionshare.memory import check_fits
from visionshare.recipes.run import Run
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.estimates import tuning_bytes
from visionshare.recipes.stages.flash import check_flash, within_flash
from visionshare.recipes.stages.images import RunImages, deformed_copies

__all__ = ["check_tuning", "fine_tuned"]


def check_tuning(recipe: Recipe, family: Any) -> None:
    """Check before any work that a recipe's classifier can be fine-tuned, if it asks for it.

    Raises
    ------
    InputError
        If a value is out of range, or the family's parameters cannot move.
    """
    if recipe.fine_tuning is not None:
        settings = _settings(recipe)
        family.check_tunable()
        if settings.quantization is not None:
            check_quantizable(family, "features")


def _settings(recipe: Recipe) -> FineTuning:
    assert recipe.fine_tuning is not None
    few_bits = {} if recipe.quantization is None else {"quantization": recipe.quantization.build()}
    settings: FineTuning = recipe.fine_tuning.build(random_state=recipe.seed, **few_bits)
    return settings


def fine_tuned(
    run: Run,
    classifier: CompactClassifier,
    images: RunImages,
    teacher: CompactClassifier | None = None,
) -> CompactClassifier:
    """Return the classifier after the epochs that the recipe asks for.

    Parameters
    ----------
    run : Run
        Its folder ``epochs`` keeps what a resumed run needs.
    classifier : CompactClassifier
    images : RunImages
    teacher : CompactClassifier, optional

    Raises
    ------
    BudgetError
        If it does not fit into the flash that the recipe allows.
    """
    recipe, training = run.recipe, images.training
    if recipe.fine_tuning is None:
        return classifier
    settings = _settings(recipe)
    classifier = within_flash(recipe, settings, classifier, training.images)
    truth = np.asarray(training.classes)[training.labels]
    options: dict[str, Any] = {"teacher": teacher, "n_jobs": run.jobs}
    options["checkpoint"] = run.work / "epochs"
    deformed = recipe.fine_tuning.deformed
    needed = tuning_bytes(classifier, settings, training.images, deformed)
    ways = "smaller batches (fine_tuning.batch), fewer maps, smaller images (data.height)"
    check_fits("fine-tuning", needed, ways)
    if not deformed:
        tuned = fine_tune(classifier, training.images, truth, settings, **options)
        return check_flash(recipe, tuned)
    # Copies that trained the search are not those of the epochs.
    first = recipe.deformations.copies

    def copy_of(epoch: int) -> np.ndarray:
        return deformed_copies(images.originals, recipe, first + epoch, 1, run.jobs)

    tuned = fine_tune(classifier, copy_of, truth[: images.n_originals], settings, **options)
    return check_flash(recipe, tuned)
