"""The first stage: training and test images, the deformed copies, and who sees which of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from visionshare.batch.mapping import Mapper, map_here
from visionshare.datasets import (
    Augmentation,
    ImageSet,
    Preprocessing,
    StoredPictures,
    augmented_copies,
    list_datasets,
    load_images,
)
from visionshare.datasets.folders import find_images, read_images
from visionshare.datasets.pictures.splits import GIVEN, HELD_OUT, NONE, SplitImages, split_pictures
from visionshare.datasets.pictures.survey import common_size
from visionshare.datasets.readers.groups import picture_groups
from visionshare.datasets.readers.registry import find_pictures
from visionshare.datasets.readers.targets import target_of
from visionshare.datasets.sampling import sample_per_class, stratified_mask
from visionshare.datasets.training_values import TrainingValues
from visionshare.errors import DataError, RecipeError
from visionshare.learners.fine_tuning import Teacher
from visionshare.machine.memory import check_fits, hold
from visionshare.machine.progress import stage
from visionshare.recipes.run import TrainingRun
from visionshare.recipes.schema import Recipe
from visionshare.recipes.stages.refusal import refusal_parts
from visionshare.recipes.stages.splitting import split_again
from visionshare.recipes.stages.stored import names_storage, survey_storage

_logger = logging.getLogger(__name__)
# Classes are unequal where the largest has so many times the images of the smallest.
_UNEQUAL = 5

_COPIED_BYTES = 32 << 20


@dataclass(frozen=True)
class RunImages:
    """The images of a run."""

    training: ImageSet
    test: ImageSet
    n_originals: int
    test_origin: str = GIVEN
    notes: tuple[str, ...] = ()
    stored: StoredPictures | None = None
    values: TrainingValues | None = None
    validation: ImageSet | None = None
    unlabeled: ImageSet | None = None
    teacher: Teacher | np.ndarray | None = None
    calibrating: ImageSet | None = None
    unknown: np.ndarray | None = None

    @property
    def pictures(self) -> ImageSet | StoredPictures:
        """All training pictures, with their labels."""
        return self.training if self.stored is None else self.stored

    @property
    def originals(self) -> np.ndarray:
        """The training images without copies."""
        return self.training.images[: self.n_originals]


def preprocessing_of(recipe: Recipe) -> Preprocessing:
    """Return how pictures are prepared, in training and whenever the classifier is used."""
    if recipe.preprocessing is None:
        return Preprocessing(fit=recipe.data.fit)
    return recipe.preprocessing.build()


def load_split(
    recipe: Recipe, data_dir: Path | None, jobs: int = 1, validates: bool = False
) -> SplitImages:
    """Return all training and test images of the recipe's data."""
    data = recipe.data
    steps = preprocessing_of(recipe)
    if not data.source:
        raise RecipeError(
            f"{recipe.name}: a recipe for your own pictures; say where they are: "
            f"visionshare train FOLDER --recipe {recipe.name}"
        )
    size = None if data.height is None or data.width is None else (data.height, data.width)
    # Arrays stay as they are unless the recipe says what they become.
    mode = data.mode if "mode" in data.model_fields_set else None
    if data.source not in list_datasets() and data.cut is None and data.fonts is None:
        pictures = find_pictures(data.source, target_of(data.target, data.period, data.labels))
        if size is None and pictures.kind == "files":
            size = common_size(pictures)
        together = None
        if data.groups is not None:
            together = picture_groups(data.source, pictures, data.groups)
        return split_pictures(
            pictures,
            size,
            mode,
            steps,
            test_fraction=data.test_fraction,
            skip_broken=data.skip_broken,
            n_jobs=jobs,
            validates=validates,
            together=together,
        )
    for name in ("test_fraction", "skip_broken", "groups", "target", "labels"):
        if getattr(data, name):
            raise RecipeError(
                f"data.{name}: {data.source!r} has training and test images of its own"
            )
    cut = None if data.cut is None else data.cut.build()
    fonts = None if data.fonts is None else data.fonts.build()
    options = (data_dir, size, mode, steps, cut, fonts)
    training = load_images(data.source, "train", *options)
    # Settings are chosen without a look at the test images.
    test = training.subset([]) if data.held_out else load_images(data.source, "test", *options)
    values = TrainingValues(arrays="rasters") if _are_bytes(training) else None
    return SplitImages(training, test, GIVEN, values=values)


def prepare_images(run: TrainingRun, validates: bool = False) -> RunImages:
    """Return the images that the recipe asks for."""
    recipe = run.recipe
    data = recipe.data
    if names_storage(data.source):
        return _stored_images(run)
    # 1) read
    split = split_again(load_split(recipe, run.data_dir, run.jobs, validates), recipe)
    loaded = split.training
    others = split.test
    origin = split.test_origin
    _hold(loaded, others)
    for note in split.notes:
        _logger.info("%s", note)
    # 2) choose among the numbers of images, which copies none
    chosen = _numbered(loaded)
    tested = _numbered(others)
    if data.held_out:
        # The same images for every seed: settings are compared on them, and the test images stay
        # unread.
        mask = stratified_mask(chosen.labels, data.held_out, 0, loaded.kept_together)
        tested = chosen.subset(np.flatnonzero(mask))
        chosen = chosen.subset(np.flatnonzero(~mask))
        others = loaded
        origin = HELD_OUT
    compared = split.validation
    if data.classes is not None:
        chosen = chosen.of_classes(data.classes)
        tested = tested.of_classes(data.classes)
        compared = None if compared is None else compared.of_classes(data.classes)
    if data.per_class is not None:
        rng = np.random.default_rng(recipe.seed)
        chosen = chosen.subset(sample_per_class(chosen.labels, data.per_class, rng))
    if data.limit is not None and data.limit < len(chosen):
        rng = np.random.default_rng(recipe.seed)
        chosen = chosen.subset(np.sort(rng.permutation(len(chosen))[: data.limit]))
    # 3) take them
    training = _taken(loaded, chosen)
    test = _taken(others, tested)
    del loaded, others
    shape = training.images.shape[1:]
    if test.classes != training.classes or test.images.shape[1:] != shape:
        raise RecipeError(f"{data.source}: training and test images differ in classes or shape")
    if len(shape) > 1:
        preprocessing_of(recipe).check_size((shape[0], shape[1]))
    unknown = calibrating = None
    if recipe.unknown is not None:
        parts = refusal_parts(recipe, training, test, compared)
        training, test, compared, calibrating, unknown = parts
    notes = (*split.notes, *_unequal_classes(training, recipe))
    values = split.values
    n_originals = len(training)
    if len(test) == 0:
        origin = NONE
    del split
    # 4) deform
    training = with_copies(training, recipe, run.jobs)
    _hold(training, test)
    unlabeled = _unlabeled_images(run, training)
    return RunImages(
        training, test, n_originals, origin, notes,
        values=values, validation=compared, unlabeled=unlabeled,
        calibrating=calibrating, unknown=unknown,
    )  # fmt: skip


def _unlabeled_images(run: TrainingRun, training: ImageSet) -> ImageSet | None:
    """Return the pictures without classes that a recipe names, as its training pictures are."""
    part = run.recipe.teacher
    if part is None or part.unlabeled is None:
        return None
    paths = find_images(part.unlabeled)
    if not paths:
        raise DataError(f"{part.unlabeled}: no pictures; give a folder of some for --unlabeled")
    rows, columns, *channels = training.images.shape[1:]
    mode = "color" if channels == [3] else "gray"
    skipped: list[str] | None = [] if run.recipe.data.skip_broken else None
    steps = preprocessing_of(run.recipe)
    images = read_images(paths, (rows, columns), mode, steps, run.jobs, skipped)
    hold("unlabeled images", images.nbytes)
    labels = np.zeros(len(images), np.int64)
    return ImageSet(images, labels, training.classes, part.unlabeled)


def _hold(training: ImageSet, test: ImageSet) -> None:
    """Note the memory of images."""
    hold("training images", training.images.nbytes)
    hold("test images", test.images.nbytes)


def _stored_images(run: TrainingRun) -> RunImages:
    """Return the training pictures of a run where they are, and what of them is read here."""
    mapper: Mapper = map_here
    if run.client is not None:
        from visionshare.distributed.mapping import ClusterMap

        mapper = ClusterMap(run.client)
    found = survey_storage(run.recipe.data, preprocessing_of(run.recipe), mapper, run.jobs)
    _hold(found.sample, found.test)
    return RunImages(
        found.sample,
        found.test,
        len(found.sample),
        GIVEN if len(found.test) else NONE,
        found.notes,
        found.stored,
        TrainingValues() if _are_bytes(found.sample) else None,
    )


def _are_bytes(images: ImageSet) -> bool:
    return images.images.ndim > 2 and images.images.dtype == np.uint8


def _unequal_classes(training: ImageSet, recipe: Recipe) -> list[str]:
    """Return what to say of classes that have far fewer images than others."""
    counts = np.bincount(training.labels, minlength=len(training.classes))
    is_balanced = getattr(recipe.learner, "class_weight", None) is not None
    has_classes = training.answers is None
    if is_balanced or recipe.data.source in list_datasets() or not has_classes:
        return []
    if counts.max() < _UNEQUAL * max(1, counts.min()):
        return []
    few, many = (training.classes[int(i)] for i in (counts.argmin(), counts.argmax()))
    return [
        f"the classes are unbalanced: {counts.max()} training pictures of {many}, {counts.min()} "
        f"of {few}; --balanced gives each class the same weight"
    ]


def _numbered(images: ImageSet) -> ImageSet:
    """Return the same labels, and numbers instead of images."""
    return replace(images, images=np.arange(len(images))[:, None])


def _taken(images: ImageSet, numbers: ImageSet) -> ImageSet:
    """Return the images with some numbers, copied where they are not all of them."""
    ids = numbers.images[:, 0]
    values = images.images
    if len(ids) < len(values) or (np.diff(ids) != 1).any():
        ways = "fewer images (data.limit, data.per_class), smaller ones (data.height, data.width)"
        check_fits("copies of the chosen images", len(ids) * values[:1].nbytes, ways)
        values = values[ids]
    return replace(numbers, images=values)


def with_copies(training: ImageSet, recipe: Recipe, jobs: int) -> ImageSet:
    """Return training images, and after them the deformed copies that a recipe asks for."""
    if recipe.deformations is None or recipe.deformations.copies == 0:
        return training
    copies = recipe.deformations.copies
    n = len(training)
    ways = "fewer copies (deformations.copies), fewer or smaller images (data.limit, data.height)"
    check_fits("deformed copies", training.images.nbytes * (copies + 1), ways)
    images = np.empty((n * (copies + 1), *training.images.shape[1:]), training.images.dtype)
    images[:n] = training.images
    augmentation = recipe.deformations.build()
    copies_of(training.images, augmentation, recipe.seed, 0, copies, jobs, images[n:])
    rows = np.tile(np.arange(n), copies + 1)
    answers = None if training.answers is None else training.answers.subset(rows)
    labels = training.labels[rows]
    weights = None if training.weights is None else training.weights[rows]
    return ImageSet(
        images, labels, training.classes, training.name, answers=answers, weights=weights
    )


def copies_of(
    images: np.ndarray,
    augmentation: Augmentation,
    seed: int,
    first: int,
    n: int,
    jobs: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Return n copies of images from the ``first`` on, (n · images, …)."""
    if out is None:
        out = np.empty((n * len(images), *images.shape[1:]), images.dtype)
    # Copies of at most so many images at a time, whatever their size.
    batch = min(4096, max(64, _COPIED_BYTES // max(1, images[:1].nbytes)))
    made = augmented_copies(images, augmentation, n, seed, batch, first, jobs)
    with stage("deforming", len(out)) as advance:
        for copy, rows, copies in made:
            start = (copy - first) * len(images)
            out[start + rows.start : start + rows.stop] = copies
            advance(len(copies))
    return out


def search_images(recipe: Recipe, images: RunImages) -> ImageSet | StoredPictures:
    """Return the training images that choose the features."""
    training = images.pictures
    n = None if recipe.fine_tuning is None else recipe.fine_tuning.search_images
    if n is None or n >= len(training):
        return training
    chosen = stratified_mask(training.labels, n / len(training), recipe.seed)
    if isinstance(training, StoredPictures):
        return training.subset(chosen)
    return training.subset(np.flatnonzero(chosen))


def validation_mask(recipe: Recipe, images: RunImages) -> np.ndarray:
    """Return which training images show where others may stop early, and do not train."""
    # A fraction of each class, with their copies; equal images count as copies.
    labels = images.training.labels[: images.n_originals]
    fraction = recipe.early_exit.fraction
    groups = images.training.subset(slice(images.n_originals)).kept_together
    mask = stratified_mask(labels, fraction, recipe.seed, groups)
    return np.tile(mask, len(images.training) // images.n_originals)
