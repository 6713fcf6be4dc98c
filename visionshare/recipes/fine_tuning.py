"""Fine-tuning in a recipe: which images each epoch sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet, elastic_deformations
from visionshare.learners import FineTuning, fine_tune
from visionshare.recipes.schema import Recipe

__all__ = ["check_tuning", "deformed_copies", "fine_tuned"]


def check_tuning(recipe: Recipe, family: Any) -> None:
    """Check before any work that a recipe's classifier can be fine-tuned, if it asks for it.

    Raises
    ------
    InputError
        If a value is out of range, or the family's parameters cannot move.
    """
    if recipe.fine_tuning is not None:
        _settings(recipe)
        family.check_tunable()


def _settings(recipe: Recipe) -> FineTuning:
    assert recipe.fine_tuning is not None
    values = recipe.fine_tuning.model_dump(exclude={"deformed", "search_images"})
    return FineTuning(**values, random_state=recipe.seed)


def deformed_copies(
    images: np.ndarray, recipe: Recipe, first: int, n: int, jobs: int = 1
) -> np.ndarray:
    """Return copies of images, (n · images, …), deformed as the recipe says.

    Parameters
    ----------
    images : ndarray of shape (m, H, W) or (m, H, W, C)
    recipe : Recipe
        With deformations.
    first, n : int
        Number of the first copy, and how many.
    jobs : int, default 1
        Threads.
    """
    assert recipe.deformations is not None
    out = np.empty((n * len(images), *images.shape[1:]), images.dtype)
    settings = recipe.deformations.model_dump(exclude={"copies"})
    for copy, places, batch in elastic_deformations(
        images, n, random_state=recipe.seed, first_copy=first, n_jobs=jobs, **settings
    ):
        start = (copy - first) * len(images)
        out[start + places.start : start + places.stop] = batch
    return out


def fine_tuned(
    classifier: CompactClassifier,
    training: ImageSet,
    originals: int,
    recipe: Recipe,
    teacher: CompactClassifier | None,
    work: Path,
    jobs: int,
    progress: bool,
) -> CompactClassifier:
    """Return the classifier after the epochs that the recipe asks for.

    Parameters
    ----------
    classifier : CompactClassifier
    training : ImageSet
        The training images, their copies after them.
    originals : int
        How many of them are no copies.
    recipe : Recipe
    teacher : CompactClassifier, optional
    work : path
        Folder whose ``epochs`` keeps what a resumed run needs.
    jobs : int
    progress : bool
    """
    settings, part, deformations = _settings(recipe), recipe.fine_tuning, recipe.deformations
    assert part is not None
    truth = np.asarray(training.classes)[training.labels]
    options: dict[str, Any] = {"teacher": teacher, "n_jobs": jobs, "progress": progress}
    options["checkpoint"] = work / "epochs"
    if not part.deformed:
        return fine_tune(classifier, training.images, truth, settings, **options)
    assert deformations is not None
    first, held = deformations.copies, training.images[:originals]

    def copy_of(epoch: int) -> np.ndarray:
        return deformed_copies(held, recipe, first + epoch, 1, jobs)

    return fine_tune(classifier, copy_of, truth[:originals], settings, **options)
