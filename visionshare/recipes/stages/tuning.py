"""Fine-tuning in a recipe: which images each epoch sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation
from visionshare.distributed.blocks import partition_bounds
from visionshare.generators.layers.tuning import check_quantizable
from visionshare.learners import FineTuning, fine_tune
from visionshare.machine.memory import check_fits
from visionshare.recipes.run import Run
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.estimates import tuning_bytes
from visionshare.recipes.stages.flash import check_flash, within_flash
from visionshare.recipes.stages.images import RunImages, copies_of
from visionshare.recipes.stages.stored import StoredImages

__all__ = ["check_tuning", "fine_tuned"]

# Images of a part in a step, at least: a smaller part would mostly call kernels. More workers than
# parts have nothing to do; larger batches have more parts.
_PART_OF_STEP = 32
# Seeds of parts lie so far apart.
_SEED_BITS = 32


def check_tuning(recipe: Recipe, family: Any) -> None:
    """Check before any work that a recipe's classifier can be fine-tuned, if it asks for it."""
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
    """Return the classifier after the epochs that the recipe asks for."""
    recipe, training = run.recipe, images.training
    if recipe.fine_tuning is None:
        return classifier
    settings = _settings(recipe)
    classifier = within_flash(recipe, settings, classifier, training.images)
    options: dict[str, Any] = {"teacher": teacher, "n_jobs": run.jobs, "client": run.client}
    options["checkpoint"] = run.work / "epochs"
    deformed = recipe.fine_tuning.deformed
    needed = tuning_bytes(classifier, settings, training.images, deformed)
    ways = "smaller batches (fine_tuning.batch), fewer maps, smaller images (data.height)"
    check_fits("fine-tuning", needed, ways)
    seen, truth = _seen(run, images, settings)
    return check_flash(recipe, fine_tune(classifier, seen, truth, settings, **options))


def _seen(run: Run, images: RunImages, settings: FineTuning) -> tuple[Any, Any]:
    """Return the images of the epochs and their classes: of all, or of each part where some are."""
    deformed, stored = run.recipe.fine_tuning.deformed, images.stored
    names = np.asarray(images.training.classes)
    if stored is not None:
        groups = stored.grouped(_parts(run, settings))
        files = [StoredImages(group, _threads(run)) for group in groups]
        seen: list[Any] = [
            _Copies.of(run, part).part(i) if deformed else part for i, part in enumerate(files)
        ]
        return seen, [names[group.labels] for group in groups]
    # Copies that trained the search are not those of the epochs.
    pictures = images.originals if deformed else images.training.images
    truth = names[images.training.labels[: len(pictures)]]
    if not run.in_partitions:
        return (_Copies.of(run, pictures) if deformed else pictures), truth
    bounds = partition_bounds(len(pictures), _parts(run, settings))
    parts = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
    seen = [
        _Copies.of(run, pictures[rows]).part(i) if deformed else pictures[rows]
        for i, rows in enumerate(parts)
    ]
    return seen, [truth[rows] for rows in parts]


def _threads(run: Run) -> int:
    """Return the threads of whoever has a part: of this process, or of a worker."""
    return run.jobs if run.client is None else min(run.client.nthreads().values())


def _parts(run: Run, settings: FineTuning) -> int:
    """Return in how many parts a step's images are: few enough to have some images each."""
    partitions = run.recipe.store.partitions
    most = max(1, settings.batch // _PART_OF_STEP)
    return most if partitions is None else min(partitions, most)


@dataclass(frozen=True)
class _Copies:
    """Images of a part, of which each epoch has deformed copies of its own."""

    images: np.ndarray | StoredImages
    augmentation: Augmentation
    seed: int
    first: int
    n_jobs: int

    @classmethod
    def of(cls, run: Run, images: np.ndarray | StoredImages) -> _Copies:
        """Return the copies of a run's images."""
        settings = run.recipe.deformations
        return cls(images, settings.build(), run.recipe.seed, settings.copies, _threads(run))

    def part(self, number: int) -> _Copies:
        """Return the copies of a part; those of the first are drawn as without parts."""
        return replace(self, seed=self.seed + (number << _SEED_BITS))

    def __call__(self, epoch: int) -> np.ndarray:
        """Return the copies of an epoch."""
        n, images = self.first + epoch, self.images
        images = images(epoch) if isinstance(images, StoredImages) else images
        return copies_of(images, self.augmentation, self.seed, n, 1, self.n_jobs)
