"""The first stage: training and test images, the deformed copies, and who sees which of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from visionshare.datasets import ImageSet, Preprocessing, augmented_copies, load_images
from visionshare.datasets.sampling import sample_per_class, stratified_mask
from visionshare.errors import RecipeError
from visionshare.recipes.run import Run
from visionshare.recipes.schema import Recipe

__all__ = [
    "RunImages",
    "deformed_copies",
    "load_split",
    "prepare_images",
    "preprocessing_of",
    "search_images",
    "validation_mask",
]


@dataclass(frozen=True)
class RunImages:
    """The images of a run.

    Attributes
    ----------
    training : ImageSet
        The originals, and after them their deformed copies.
    test : ImageSet
    n_originals : int
    """

    training: ImageSet
    test: ImageSet
    n_originals: int

    @property
    def originals(self) -> np.ndarray:
        """The training images without copies."""
        return self.training.images[: self.n_originals]


def preprocessing_of(recipe: Recipe) -> Preprocessing:
    """Return how pictures are prepared, in training and whenever the classifier is used."""
    if recipe.preprocessing is None:
        return Preprocessing(fit=recipe.data.fit)
    steps: Preprocessing = recipe.preprocessing.build()
    return steps


def load_split(recipe: Recipe, split: str, data_dir: Path | None) -> ImageSet:
    """Return all images of a split of the recipe's data.

    Raises
    ------
    DataError
        If the source is missing, foreign or broken.
    """
    data = recipe.data
    size = None if data.height is None or data.width is None else (data.height, data.width)
    cut = None if data.cut is None else data.cut.build()
    fonts = None if data.fonts is None else data.fonts.build()
    steps = preprocessing_of(recipe)
    return load_images(data.source, split, data_dir, size, data.mode, steps, cut, fonts)


def prepare_images(run: Run) -> RunImages:
    """Return the images that the recipe asks for.

    Raises
    ------
    DataError, RecipeError, InputError
        If the data is missing or does not fit the recipe.
    """
    recipe, data = run.recipe, run.recipe.data
    training = load_split(recipe, "train", run.data_dir)
    if data.held_out:
        # The same images for every seed: settings are compared on them, and the test images stay
        # unread.
        validation = stratified_mask(training.labels, data.held_out, 0)
        test = training.subset(np.flatnonzero(validation))
        training = training.subset(np.flatnonzero(~validation))
    else:
        test = load_split(recipe, "test", run.data_dir)
    if data.classes is not None:
        training, test = training.of_classes(data.classes), test.of_classes(data.classes)
    if data.per_class is not None:
        rng = np.random.default_rng(recipe.seed)
        training = training.subset(sample_per_class(training.labels, data.per_class, rng))
    if data.limit is not None and data.limit < len(training):
        rng = np.random.default_rng(recipe.seed)
        training = training.subset(np.sort(rng.permutation(len(training))[: data.limit]))
    shape = training.images.shape[1:]
    if test.classes != training.classes or test.images.shape[1:] != shape:
        raise RecipeError(f"{data.source}: training and test images differ in classes or shape")
    if len(shape) > 1:
        preprocessing_of(recipe).check_size((shape[0], shape[1]))
    return RunImages(_with_copies(training, recipe, run.jobs), test, len(training))


def _with_copies(training: ImageSet, recipe: Recipe, jobs: int) -> ImageSet:
    copies = 0 if recipe.deformations is None else recipe.deformations.copies
    if copies == 0:
        return training
    images = np.concatenate(
        [training.images, deformed_copies(training.images, recipe, 0, copies, jobs)]
    )
    labels = np.tile(training.labels, copies + 1)
    return ImageSet(images, labels, training.classes, training.name)


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
    settings = recipe.deformations.build()
    for copy, rows, batch in augmented_copies(
        images, settings, n, recipe.seed, first_copy=first, n_jobs=jobs
    ):
        start = (copy - first) * len(images)
        out[start + rows.start : start + rows.stop] = batch
    return out


def search_images(recipe: Recipe, images: RunImages) -> ImageSet:
    """Return the training images that choose the features."""
    training = images.training
    n = None if recipe.fine_tuning is None else recipe.fine_tuning.search_images
    if n is None or n >= len(training):
        return training
    chosen = stratified_mask(training.labels, n / len(training), recipe.seed)
    return training.subset(np.flatnonzero(chosen))


def validation_mask(recipe: Recipe, images: RunImages) -> np.ndarray:
    """Return which training images do not train: a fraction of each class, with their copies.

    They show where others may stop early; none where the recipe has no early exit.
    """
    n = images.n_originals
    mask = np.zeros(n, bool)
    if recipe.early_exit is not None:
        fraction = recipe.early_exit.fraction
        mask = stratified_mask(images.training.labels[:n], fraction, recipe.seed)
    return np.tile(mask, len(images.training) // n)
