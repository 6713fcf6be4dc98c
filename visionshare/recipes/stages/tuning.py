"""Fine-tuning in a recipe: which images each epoch sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation
from visionshare.distributed.blocks import partition_bounds
from visionshare.generators.quantized.tuning import check_quantizable
from visionshare.learners import FineTuning, fine_tune
from visionshare.memory import check_fits
from visionshare.recipes.run import Run
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.estimates import tuning_bytes
from visionshare.recipes.stages.flash import check_flash, within_flash
from visionshare.recipes.stages.images import RunImages, copies_of

__all__ = ["check_tuning", "fine_tuned"]

# Images of a part in a step, at least: a smaller part would mostly call kernels. More workers than
# parts have nothing to do; larger batches have more parts.
_PART_OF_STEP = 32
# Seeds of parts lie so far apart.
_SEED_BITS = 32


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
    options: dict[str, Any] = {"teacher": teacher, "n_jobs": run.jobs, "client": run.client}
    options["checkpoint"] = run.work / "epochs"
    deformed = recipe.fine_tuning.deformed
    needed = tuning_bytes(classifier, settings, training.images, deformed)
    ways = "smaller batches (fine_tuning.batch), fewer maps, smaller images (data.height)"
    check_fits("fine-tuning", needed, ways)
    if deformed:
        # Copies that trained the search are not those of the epochs.
        pictures, truth = images.originals, truth[: images.n_originals]
        epochs = _Copies.of(run, pictures)
    else:
        pictures, epochs = training.images, None
    if not run.in_partitions:
        whole = pictures if epochs is None else epochs
        return check_flash(recipe, fine_tune(classifier, whole, truth, settings, **options))
    bounds = partition_bounds(len(pictures), _parts(run, settings))
    rows = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
    seen: list[Any] = [
        pictures[r] if epochs is None else epochs.part(i, r) for i, r in enumerate(rows)
    ]
    tuned = fine_tune(classifier, seen, [truth[r] for r in rows], settings, **options)
    return check_flash(recipe, tuned)


def _parts(run: Run, settings: FineTuning) -> int:
    """Return in how many parts a step's images are: few enough to have some images each."""
    partitions = run.recipe.store.partitions
    most = max(1, settings.batch // _PART_OF_STEP)
    return most if partitions is None else min(partitions, most)


@dataclass(frozen=True)
class _Copies:
    """Images of a part, of which each epoch has deformed copies of its own."""

    images: np.ndarray
    augmentation: Augmentation
    seed: int
    first: int
    n_jobs: int

    @classmethod
    def of(cls, run: Run, images: np.ndarray) -> _Copies:
        """Return the copies of a run's images."""
        settings = run.recipe.deformations
        threads = run.jobs if run.client is None else min(run.client.nthreads().values())
        return cls(images, settings.build(), run.recipe.seed, settings.copies, threads)

    def part(self, number: int, rows: slice) -> _Copies:
        """Return the copies of some images; those of the first part are drawn as without parts."""
        seed = self.seed + (number << _SEED_BITS)
        return replace(self, images=self.images[rows], seed=seed)

    def __call__(self, epoch: int) -> np.ndarray:
        """Return the copies of an epoch."""
        n = self.first + epoch
        return copies_of(self.images, self.augmentation, self.seed, n, 1, self.n_jobs)
