"""Training pictures that stay in storage: surveyed once, read by whoever has their partition."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from visionshare.batch.mapping import Mapper
from visionshare.datasets import ImageSet, Preprocessing, StoredPictures, survey_shards
from visionshare.datasets.readers.labels import role_of
from visionshare.datasets.readers.stored_arrays import is_zarr
from visionshare.datasets.sampling import stratified_mask
from visionshare.datasets.shards import stored_files
from visionshare.errors import DataError, RecipeError
from visionshare.files.storage import is_url
from visionshare.machine.memory import check_fits

# Images that families are fitted to, and that reports show.
_SAMPLE = 10_000


def names_storage(source: str) -> bool:
    """Return whether a source of data says files that are read by partitions."""
    # A URL, a pattern, or a Zarr group; one file or folder of this machine is read whole.
    return is_url(source) or glob.has_magic(source) or is_zarr(source)


def split_files(source: str) -> tuple[list[str], list[str]]:
    """Return the files that train, and those that test, by the words of their names."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    for name in stored_files(source):
        words = re.split(r"[^a-z]+", PurePosixPath(name).name.lower())
        parts[any(role_of(word) == "test" for word in words)].append(name)
    if not any(parts.values()):
        raise DataError(f"no files match {source!r}")
    if not parts[False]:
        raise DataError(f"{source}: no training files")
    return parts[False], parts[True]


class StoredImages:
    """Images of some files: read when they are first asked for, then kept by that process."""

    def __init__(self, stored: StoredPictures, n_jobs: int) -> None:
        self._stored = stored
        self._n_jobs = n_jobs
        self._images: np.ndarray | None = None

    def __call__(self, epoch: int) -> np.ndarray:
        """Return the images, the same for every epoch."""
        if self._images is None:
            self._images = self._stored.images(self._n_jobs)
        return self._images

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_images": None}


@dataclass(frozen=True)
class StoredSurvey:
    """What a survey of storage has found."""

    stored: StoredPictures
    sample: ImageSet
    test: ImageSet
    notes: tuple[str, ...]


def survey_storage(data: Any, steps: Preprocessing, mapper: Mapper, jobs: int = 1) -> StoredSurvey:
    """Survey the files of a recipe's data, and read a sample and the test pictures."""
    train, test = split_files(data.source)

    def surveyed(files: list[str]) -> StoredPictures:
        return survey_shards(
            files,
            (data.height, data.width),
            data.mode,
            steps,
            skip_broken=data.skip_broken,
            mapper=mapper,
        )

    stored = surveyed(train)
    if len(stored.classes) < 2:
        raise DataError(f"{data.source}: one class; a classifier needs two at least")
    notes = [f"{stored.broken} pictures cannot be read"] if stored.broken else []
    notes += [f"left out: {why}" for why in stored.skipped]
    sample = _sample(stored, jobs)
    if not test:
        return StoredSurvey(stored, sample, sample.subset(slice(0, 0)), tuple(notes))
    tested = surveyed(test)
    unknown = sorted(set(tested.classes) - set(stored.classes))
    if unknown:
        raise DataError(f"{test[0]}: the class {unknown[0]!r} has no training pictures")
    _check_room("test pictures", tested)
    numbers = np.array([stored.classes.index(name) for name in tested.classes])
    labels = numbers[tested.labels]
    images = ImageSet(tested.images(jobs), labels, tuple(stored.classes), "test")
    return StoredSurvey(stored, sample, images, tuple(notes))


def check_stored(recipe: Any) -> None:
    """Check before any work that pictures of storage can train a recipe."""
    data = recipe.data
    needs = "not with pictures that stay in storage"
    if data.height is None:
        raise RecipeError("data.height: pictures of storage need a size (--size 32)")
    for name in ("cut", "fonts", "classes", "per_class", "limit", "groups"):
        if getattr(data, name) is not None:
            raise RecipeError(f"data.{name}: {needs}")
    if data.held_out or data.test_fraction:
        name = "held_out" if data.held_out else "test_fraction"
        accepted = 'whole files are the test set, those with the word "test" in their names'
        raise RecipeError(f"data.{name}: {needs}; {accepted}")
    for name in ("early_exit", "unknown"):
        if getattr(recipe, name) is not None:
            raise RecipeError(f"{name}: {needs}")
    if recipe.deformations is not None and recipe.deformations.copies:
        raise RecipeError(f"deformations.copies: {needs}; fine_tuning.deformed makes them there")
    if recipe.store.partitions is not None:
        raise RecipeError("store.partitions: each file of storage is a partition")


def _sample(stored: StoredPictures, jobs: int) -> ImageSet:
    """Return some of the pictures, of a few files and of all classes of these."""
    n = len(stored.shards)
    chosen = np.unique(np.linspace(0, n - 1, 4).astype(int))
    sizes = [len(shard.labels) for shard in stored.shards]
    mask = np.isin(np.repeat(np.arange(n), sizes), chosen)
    labels = stored.labels
    if mask.sum() > _SAMPLE:
        rows = np.flatnonzero(mask)
        mask[rows[~stratified_mask(labels[rows], _SAMPLE / len(rows), 0)]] = False
    some = stored.subset(mask)
    _check_room("a sample of the pictures", some)
    return ImageSet(some.images(jobs), some.labels, stored.classes, "training")


def _check_room(what: str, stored: StoredPictures) -> None:
    height, width = stored.reading.size
    channels = 3 if stored.reading.mode == "color" else 1
    needed = 2.0 * len(stored) * height * width * channels
    check_fits(what, needed, "fewer test files, smaller images (data.height)")
