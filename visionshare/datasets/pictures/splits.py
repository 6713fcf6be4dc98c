"""Training and test images of one's own pictures, and where the test images come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from visionshare.datasets.copies import group_numbers, joined_groups
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.notices import pages_sentence
from visionshare.datasets.pictures.reading import read_pictures
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.readers.labels import TEST, TRAIN, VALIDATION
from visionshare.datasets.readers.picture_set import PictureSet
from visionshare.datasets.training_values import BYTE, TrainingValues
from visionshare.errors import InputError

# Where test images come from.
GIVEN = "given"
HELD_OUT = "held out"
NONE = "none"
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
    together: np.ndarray | None = None,
) -> SplitImages:
    """Return training and test images of labeled pictures, and validation images where asked."""
    # Where the source does not say what tests, a fraction of each class is kept aside: the same
    # pictures each time, one at least of each class that has two, and never a copy of a training
    # picture. Pictures named for validation never train; they test where none is named for
    # testing and no fraction is given. Pictures of one group (``together``) are in one part.
    if test_fraction is not None:
        if not 0 <= test_fraction < 1:
            raise InputError("test_fraction", test_fraction, "a number from 0 to below 1")
        if pictures.has_test:
            accepted = f"none: {pictures.name} says itself which pictures test"
            raise InputError("test_fraction", test_fraction, accepted)
    # 1) what each picture is for
    roles = np.full(len(pictures), TRAIN) if pictures.roles is None else pictures.roles
    if test_fraction is None and not validates and not pictures.has_test:
        roles = np.where(roles == VALIDATION, TEST, roles)
    chosen = None if validates else roles != VALIDATION
    read = read_pictures(
        pictures, size, mode, steps, chosen=chosen, skip_broken=skip_broken, n_jobs=n_jobs
    )
    roles = roles[read.numbers]
    labels = pictures.labels[read.numbers]
    copies = group_numbers(read.digests)
    groups = copies if together is None else joined_groups(copies, together[read.numbers])
    validating = roles == VALIDATION
    testing = roles == TEST
    training = roles == TRAIN
    notes = list(pictures.notes)
    n_leaked = 0
    origin = GIVEN
    # 2) the test pictures
    if testing.any():
        leaked = testing & np.isin(copies, copies[training])
        n_leaked = int(leaked.sum())
        if n_leaked:
            one = int(np.flatnonzero(leaked)[0])
            other = int(np.flatnonzero(training & (copies == copies[one]))[0])
            notes.append(
                f"{n_leaked} of {testing.sum()} test pictures are training pictures too, such as "
                f"{read.names[one]} and {read.names[other]}: the test error is lower than it "
                "should be"
            )
        shared = testing & ~leaked & np.isin(groups, groups[training])
        if shared.any():
            notes.append(
                f"{shared.sum()} of {testing.sum()} test pictures are of a group that trains too: "
                "the test error is lower than it should be"
            )
    else:
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        testing[training] = held_out(labels[training], fraction, groups[training])
        origin = HELD_OUT if testing.any() else NONE
        if testing.any():
            notes.append(
                f"no test set found; holding out {testing.sum()} of {training.sum()} images "
                f"({100 * fraction:.0f} % per class)"
            )
        else:
            why = "no class has two different pictures" if fraction else "none were asked for"
            notes.append(f"there are no test pictures ({why}): no test error is given")
        training &= ~testing
    # 3) a copy of a picture that trains or tests would not compare fairly
    validating &= ~np.isin(groups, groups[training | testing])
    # 4) what a user should know
    notes += _notes_of_copies(labels, copies, training)
    tested = np.bincount(labels[testing], minlength=len(pictures.classes)) > 0
    untested = list(compress(pictures.classes, ~tested))
    if testing.any() and untested and pictures.answers is None:
        notes.append(
            f"{_count(len(untested), 'class has', 'classes have')} no test picture: "
            f"{', '.join(untested[:5])}"
        )
    if read.left_out:
        notes.append(pages_sentence(read.left_out))
    if read.broken:
        n_broken = _count(len(read.broken), "broken picture is", "broken pictures are")
        notes.append(f"{n_broken} left out, such as {read.broken[0]}")
    # 5) the parts
    values = None
    if read.images.ndim >= 3 and read.images.dtype == np.uint8:
        # What they had before they became bytes.
        low, high = pictures.values or BYTE
        arrays = "rasters" if pictures.kind == "prepared" else "pictures"
        kind = "bytes" if (low, high) == BYTE else "other"
        values = TrainingValues(low, high, kind, arrays)
    validation = read.images[validating]
    parts = _parted(read.images, training, testing)
    names = read.short_names

    def part(images: np.ndarray, mask: np.ndarray) -> ImageSet:
        chosen_names = tuple(compress(names, mask))
        made = ImageSet(images, labels[mask], pictures.classes, pictures.name, chosen_names)
        if pictures.answers is not None:
            made = replace(made, answers=pictures.answers.subset(read.numbers[mask]))
        return made if together is None else replace(made, groups=groups[mask])

    return SplitImages(
        part(parts[0], training),
        part(parts[1], testing),
        origin,
        tuple(notes),
        len(read.broken),
        n_leaked,
        values,
        part(validation, validating) if validates else None,
    )


def _parted(
    images: np.ndarray, training: np.ndarray, testing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test images as parts of the array, which is put in order for that."""
    # Copies of both would take as much memory again.
    test = images[testing]
    rows = np.flatnonzero(training)
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
    if groups is None:
        groups = np.arange(len(labels))
    # A group counts for the class of its first example.
    first_of_group, firsts = np.unique(groups, return_index=True)
    rng = np.random.default_rng(seed)
    drawn = []
    for label in np.unique(labels) if fraction > 0 else ():
        members = rng.permutation(first_of_group[labels[firsts] == label])
        if len(members) >= 2:
            n = min(max(1, round(fraction * len(members))), len(members) - 1)
            drawn += members[:n].tolist()
    return np.isin(groups, drawn)


def _notes_of_copies(labels: np.ndarray, groups: np.ndarray, training: np.ndarray) -> list[str]:
    notes = []
    copies = int(training.sum()) - len(np.unique(groups[training]))
    if copies:
        one = "training picture is a copy of another"
        notes.append(_count(copies, one, "training pictures are copies of others"))
    pairs = np.unique(np.stack([groups, labels]), axis=1)
    several = pairs.shape[1] - len(np.unique(groups))
    if several:
        notes.append(_count(several, "picture stands", "pictures stand") + " in several classes")
    return notes


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
