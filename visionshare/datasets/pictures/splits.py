"""Training and test images of one's own pictures, and where the test images come from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np

from visionshare.datasets.copies import group_numbers
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.notices import pages_sentence
from visionshare.datasets.pictures.reading import ReadPictures, read_pictures
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.labels import TEST, TRAIN, VALIDATION
from visionshare.datasets.readers.picture_set import PictureSet
from visionshare.datasets.training_values import BYTE, TrainingValues
from visionshare.errors import InputError

# Where test images come from.
GIVEN, HELD_OUT, NONE = "given", "held out", "none"
TEST_FRACTION = 0.2
# The part that is kept aside is the same for every seed of a recipe.
_SEED = 0
_MOVED_AT_ONCE = 256


@dataclass(frozen=True)
class SplitImages:
    """Training and test images."""

    training: ImageSet
    test: ImageSet
    test_origin: str
    notes: tuple[str, ...] = ()
    n_broken: int = 0
    n_leaked: int = 0
    values: TrainingValues | None = None
    validation: ImageSet | None = None


def split_pictures(
    pictures: PictureSet,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    steps: Preprocessing | None = None,
    *,
    test_fraction: float | None = None,
    skip_broken: bool = False,
    n_jobs: int = 1,
    validates: bool = False,
) -> SplitImages:
    """Return training and test images of labeled pictures, and validation images where asked."""
    # Where the source does not say what tests, a fraction of each class is kept aside: the same
    # pictures each time, one at least of each class that has two, and never a copy of a training
    # picture. Pictures named for validation never train; they test where none is named for
    # testing and no fraction is given.
    if test_fraction is not None and not 0 <= test_fraction < 1:
        raise InputError("test_fraction", test_fraction, "a number from 0 to below 1")
    if test_fraction is not None and pictures.has_test:
        accepted = f"none: {pictures.name} says itself which pictures test"
        raise InputError("test_fraction", test_fraction, accepted)
    roles = _roles(pictures, test_fraction is not None or validates)
    chosen = None if roles is None or validates else roles != VALIDATION
    read = read_pictures(
        pictures, size, mode, steps, chosen=chosen, skip_broken=skip_broken, n_jobs=n_jobs
    )
    labels, notes = pictures.labels[read.numbers], list(pictures.notes)
    groups = group_numbers(read.digests)
    fraction = TEST_FRACTION if test_fraction is None else test_fraction
    n_leaked = 0
    of_each = np.full(len(labels), TRAIN) if roles is None else roles[read.numbers]
    validating = of_each == VALIDATION
    if (of_each == TEST).any():
        origin = GIVEN
        testing, training = of_each == TEST, of_each == TRAIN
        leaked = testing & np.isin(groups, groups[training])
        n_leaked = int(np.sum(leaked))
        notes += _leak_notes(read, groups, leaked, training, int(testing.sum()))
    else:
        testing = np.zeros(len(labels), bool)
        testing[~validating] = held_out(labels[~validating], fraction, groups[~validating])
        training = ~testing & ~validating
        origin = HELD_OUT if testing.any() else NONE
        notes += _fraction_notes(fraction, testing[~validating])
    # A copy of a picture that trains or tests would not compare fairly.
    validating &= ~np.isin(groups, groups[training | testing])
    notes += _set_notes(pictures, labels, training, testing, groups)
    notes += filter(None, [pages_sentence(read.left_out)])
    if read.broken:
        first = read.broken[0]
        notes.append(
            f"a broken picture is left out: {first}"
            if len(read.broken) == 1
            else f"{len(read.broken)} broken pictures are left out, such as {first}"
        )
    validation = read.images[validating]
    parts = _parted(read.images, training, testing)
    classes, name = pictures.classes, pictures.name

    def part(images: np.ndarray, mask: np.ndarray) -> ImageSet:
        names = tuple(compress(read.short_names, mask))
        return ImageSet(images, labels[mask], classes, name, names)

    return SplitImages(
        part(parts[0], training),
        part(parts[1], testing),
        origin,
        tuple(notes),
        len(read.broken),
        n_leaked,
        _values_of(pictures, read.images),
        part(validation, validating) if validates else None,
    )


def _values_of(pictures: PictureSet, images: np.ndarray) -> TrainingValues | None:
    """Return the values that pictures had before they became bytes."""
    if images.ndim < 3 or images.dtype != np.uint8:
        return None
    low, high = pictures.values or BYTE
    arrays = "rasters" if pictures.kind == "prepared" else "pictures"
    return TrainingValues(low, high, "bytes" if (low, high) == BYTE else "other", arrays)


def _roles(pictures: PictureSet, keeps_validation: bool) -> np.ndarray | None:
    """Return what each picture is for: those for validation test where nothing else does."""
    roles = pictures.roles
    if roles is None or keeps_validation or pictures.has_test:
        return roles
    return np.where(roles == VALIDATION, TEST, roles)


def _parted(
    images: np.ndarray, training: np.ndarray, testing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test images as parts of the array, which is put in order for that."""
    # Copies of both would take as much memory again.
    test, rows = images[testing], np.flatnonzero(training)
    for start in range(0, len(rows), _MOVED_AT_ONCE):
        part = rows[start : start + _MOVED_AT_ONCE]
        # Ascending rows move to the front: none is written over before it has moved.
        images[start : start + len(part)] = images[part]
    end = len(rows) + len(test)
    images[len(rows) : end] = test
    return images[: len(rows)], images[len(rows) : end]


def held_out(
    labels: np.ndarray, fraction: float, groups: np.ndarray | None = None, seed: int = _SEED
) -> np.ndarray:
    """Return a mask (n,) of a fraction of each class, one at least of each class that has two."""
    mask = np.zeros(len(labels), bool)
    if fraction == 0:
        return mask
    groups = np.arange(len(labels)) if groups is None else groups
    # A group counts for the class of its first example.
    first_of_group, firsts = np.unique(groups, return_index=True)
    rng, drawn = np.random.default_rng(seed), []
    for label in np.unique(labels):
        members = rng.permutation(first_of_group[labels[firsts] == label])
        if len(members) >= 2:
            n = min(max(1, round(fraction * len(members))), len(members) - 1)
            drawn.append(members[:n])
    if drawn:
        mask = np.isin(groups, np.concatenate(drawn))
    return mask


def _leak_notes(
    read: ReadPictures, groups: np.ndarray, leaked: np.ndarray, training: np.ndarray, n_test: int
) -> list[str]:
    if not leaked.any():
        return []
    one = int(np.flatnonzero(leaked)[0])
    other = int(np.flatnonzero(training & (groups == groups[one]))[0])
    return [
        f"{int(leaked.sum())} of {n_test} test pictures are training pictures too, such as "
        f"{read.names[one]} and {read.names[other]}: the test error is lower than it should be"
    ]


def _fraction_notes(fraction: float, testing: np.ndarray) -> list[str]:
    n = int(testing.sum())
    if n:
        return [
            f"the pictures come without test pictures: {n} of {len(testing)}, about "
            f"{fraction:.0%} of each class, are kept aside and test"
        ]
    why = "none were asked for" if fraction == 0 else "no class has two different pictures"
    return [f"there are no test pictures ({why}): no test error is given"]


def _set_notes(
    pictures: PictureSet,
    labels: np.ndarray,
    training: np.ndarray,
    testing: np.ndarray,
    groups: np.ndarray,
) -> list[str]:
    notes = []
    copies = int(training.sum()) - len(np.unique(groups[training]))
    if copies:
        notes.append(
            "a training picture is a copy of another"
            if copies == 1
            else f"{copies} training pictures are copies of others"
        )
    several = len(np.unique(np.stack([groups, labels]), axis=1).T) - len(np.unique(groups))
    if several:
        notes.append(
            "a picture stands in more than one class"
            if several == 1
            else f"{several} pictures stand in more than one class"
        )
    if testing.any():
        tested = np.bincount(labels[testing], minlength=len(pictures.classes)) > 0
        if untested := [c for c, seen in zip(pictures.classes, tested, strict=True) if not seen]:
            shown = ", ".join(untested[:5])
            have = "1 class has" if len(untested) == 1 else f"{len(untested)} classes have"
            notes.append(f"{have} no test picture: {shown}")
    return notes
