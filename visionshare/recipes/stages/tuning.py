"""Fine-tuning in a recipe: which images each epoch sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from visionshare.answers import LabelRule
from visionshare.classifier import CompactClassifier
from visionshare.datasets import Augmentation
from visionshare.distributed.blocks import partition_bounds
from visionshare.generators.layers.tuning import check_quantizable
from visionshare.learners import FineTuning, fine_tune
from visionshare.machine.memory import check_fits
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.estimates import tuning_bytes
from visionshare.recipes.stages.flash import check_flash, within_flash
from visionshare.recipes.stages.images import RunImages, copies_of
from visionshare.recipes.stages.stored import StoredImages

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
    return recipe.fine_tuning.build(random_state=recipe.seed, **few_bits)


def fine_tuned(
    run: TrainingRun, classifier: CompactClassifier, images: RunImages
) -> CompactClassifier:
    """Return the classifier after the epochs that the recipe asks for."""
    recipe = run.recipe
    if recipe.fine_tuning is None:
        return classifier
    settings = _settings(recipe)
    teacher = images.teacher
    answers = images.training.answers
    if answers is not None:
        # What the images show stands for all that is said of classes.
        settings = replace(settings, teacher_weight=1.0, teacher_temperature=1.0)
        n = images.n_originals if recipe.fine_tuning.deformed else len(images.training)
        teacher = answers.table()[:n]
        if isinstance(answers.rule, LabelRule):
            settings = replace(settings, several=True)
            classifier = _of_labels(classifier, answers.rule)
    classifier = within_flash(recipe, settings, classifier, images.training.images)
    check_fits(
        "fine-tuning",
        tuning_bytes(classifier, settings, images.training.images, recipe.fine_tuning.deformed),
        "smaller batches (fine_tuning.batch), fewer maps, smaller images (data.height)",
    )
    seen, truth, weights = _seen(run, images, settings)
    if settings.several:
        # Labels are in the table; what stands for one class is not looked at.
        first = classifier.classes_[:1]
        truth = (
            [np.repeat(first, len(part)) for part in truth]
            if run.in_partitions
            else (np.repeat(first, len(truth)))
        )
    tuned = fine_tune(
        classifier,
        seen,
        truth,
        settings,
        teacher=teacher,
        sample_weight=weights,
        n_jobs=run.jobs,
        client=run.client,
        checkpoint=run.work / "epochs",
        curve=run.curve(),
    )
    # Each label's own probabilities were learned.
    tuned = replace(tuned, temperature=1.0) if settings.several else tuned
    return check_flash(recipe, tuned)


def _of_labels(classifier: CompactClassifier, rule: LabelRule) -> CompactClassifier:
    """Return the same features, and weights of 0 for each label."""
    k = len(rule.labels)
    weights = np.zeros((k, classifier.n_features), np.float32)
    return replace(
        classifier, classes=rule.classes, weights=weights, intercept=np.zeros(k, np.float32),
        path=(), exit_rule=None,
    )  # fmt: skip


def _seen(run: TrainingRun, images: RunImages, settings: FineTuning) -> tuple[Any, Any, Any]:
    """Return the images of the epochs, classes and weights: of all, or lists of those of parts."""
    names = np.asarray(images.training.classes)
    is_deformed = run.recipe.fine_tuning.deformed
    parts: list[Any]
    weights: Any = None
    if images.stored is not None:
        groups = images.stored.grouped(_parts(run, settings))
        parts = [StoredImages(group, _threads(run)) for group in groups]
        truth = [names[group.labels] for group in groups]
    else:
        # The epochs draw other copies than the search.
        pictures = images.originals if is_deformed else images.training.images
        labels = names[images.training.labels[: len(pictures)]]
        n = _parts(run, settings) if run.in_partitions else 1
        bounds = pairwise(partition_bounds(len(pictures), n).tolist())
        rows = [slice(first, last) for first, last in bounds]
        parts = [pictures[part] for part in rows]
        truth = [labels[part] for part in rows]
        if images.training.weights is not None:
            weights = [images.training.weights[: len(pictures)][part] for part in rows]
    if is_deformed:
        parts = [_Copies.of(run, part, number) for number, part in enumerate(parts)]
    if not run.in_partitions:
        return parts[0], truth[0], None if weights is None else weights[0]
    return parts, truth, weights


def _threads(run: TrainingRun) -> int:
    """Return the threads of whoever has a part: of this process, or of a worker."""
    return run.jobs if run.client is None else min(run.client.nthreads().values())


def _parts(run: TrainingRun, settings: FineTuning) -> int:
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
    def of(cls, run: TrainingRun, images: np.ndarray | StoredImages, number: int) -> _Copies:
        """Return the copies of a part of a run's images; the first are drawn as without parts."""
        deformations = run.recipe.deformations
        seed = run.recipe.seed + (number << _SEED_BITS)
        return cls(images, deformations.build(), seed, deformations.copies, _threads(run))

    def __call__(self, epoch: int) -> np.ndarray:
        """Return the copies of an epoch."""
        images = self.images
        if isinstance(images, StoredImages):
            images = images(epoch)
        return copies_of(images, self.augmentation, self.seed, self.first + epoch, 1, self.n_jobs)
