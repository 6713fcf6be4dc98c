"""Training and test images of one's own pictures, and where the test images come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from visionshare.datasets.copies import group_numbers, joined_groups
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.notices import pages_sentence
from visionshare.datasets.pictures.reading import ReadPictures, read_pictures
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
    _check_fraction(test_fraction, pictures)
    # 1) what each picture is for
    roles = np.full(len(pictures), TRAIN) if pictures.roles is None else pictures.roles
    if test_fraction is None and not validates and not pictures.has_test:
        roles = np.where(roles == VALIDATION, TEST, roles)
    chosen = None if validates else roles != VALIDATION
    read = read_pictures(
        pictures, size, mode, steps, chosen=chosen, skip_broken=skip_broken, n_jobs=n_jobs
    )
    copies = group_numbers(read.digests)
    groups = copies if together is None else joined_groups(copies, together[read.numbers])
    parts = _Parts(roles[read.numbers], pictures.labels[read.numbers], copies, groups)
    # 2) the test pictures
    notes = list(pictures.notes)
    n_leaked = 0
    origin = GIVEN
    if parts.testing.any():
        n_leaked, found = parts.leaks(read.names)
        notes += found
    else:
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        notes.append(parts.hold_out(fraction))
        origin = HELD_OUT if parts.testing.any() else NONE
    # 3) a copy of a picture that trains or tests would not compare fairly
    validating = parts.validating & ~np.isin(groups, groups[parts.training | parts.testing])
    # 4) what a user should know
    notes += _notes_of_copies(parts.labels, copies, parts.training)
    notes += _notes_of_untested(parts, pictures)
    notes += _notes_of_files(read)
    # 5) the images of each part; validation images are copied before the others move
    values = _values_of(read.images, pictures)
    validation = read.images[validating]
    training, testing = _parted(read.images, parts.training, parts.testing)
    short_names = read.short_names

    def part(images: np.ndarray, mask: np.ndarray) -> ImageSet:
        names = tuple(compress(short_names, mask))
        made = ImageSet(images, parts.labels[mask], pictures.classes, pictures.name, names)
        if pictures.answers is not None:
            made = replace(made, answers=pictures.answers.subset(read.numbers[mask]))
        return made if together is None else replace(made, groups=groups[mask])

    return SplitImages(
        part(training, parts.training),
        part(testing, parts.testing),
        origin,
        tuple(notes),
        len(read.broken),
        n_leaked,
        values,
        part(validation, validating) if validates else None,
    )


def _check_fraction(test_fraction: float | None, pictures: PictureSet) -> None:
    if test_fraction is None:
        return
    if not 0 <= test_fraction < 1:
        raise InputError("test_fraction", test_fraction, "a number from 0 to below 1")
    if pictures.has_test:
        accepted = f"none: {pictures.name} has test pictures of its own"
        raise InputError("test_fraction", test_fraction, accepted)


class _Parts:
    """Which pictures train, test and validate, as masks; their labels, copies and groups."""

    def __init__(
        self, roles: np.ndarray, labels: np.ndarray, copies: np.ndarray, groups: np.ndarray
    ) -> None:
        self.training = roles == TRAIN
        self.testing = roles == TEST
        self.validating = roles == VALIDATION
        self.labels = labels
        self.copies = copies
        self.groups = groups

    def leaks(self, names: Sequence[str]) -> tuple[int, list[str]]:
        """Return how many test pictures are copies of training pictures, and notes of leaks."""
        notes = []
        copied = self.testing & np.isin(self.copies, self.copies[self.training])
        n_copied = int(copied.sum())
        if n_copied:
            one = int(np.flatnonzero(copied)[0])
            same = self.training & (self.copies == self.copies[one])
            other = int(np.flatnonzero(same)[0])
            notes.append(
                f"{n_copied} of {self.testing.sum()} test pictures are training pictures too, "
                f"such as {names[one]} and {names[other]}: the test error is lower than it "
                "should be"
            )
        related = self.testing & ~copied & np.isin(self.groups, self.groups[self.training])
        if related.any():
            notes.append(
                f"{related.sum()} of {self.testing.sum()} test pictures are of a group that "
                "trains too: the test error is lower than it should be"
            )
        return n_copied, notes

    def hold_out(self, fraction: float) -> str:
        """Let a fraction of the training pictures of each class test; return a note of it."""
        training = self.training
        self.testing[training] = held_out(self.labels[training], fraction, self.groups[training])
        self.training = training & ~self.testing
        if self.testing.any():
            return (
                f"no test set found; holding out {self.testing.sum()} of {training.sum()} images "
                f"({100 * fraction:.0f} % per class)"
            )
        why = "no class has two different pictures" if fraction else "none were requested"
        return f"there are no test pictures ({why}): no test error is given"


def _notes_of_untested(parts: _Parts, pictures: PictureSet) -> list[str]:
    tested = np.bincount(parts.labels[parts.testing], minlength=len(pictures.classes)) > 0
    untested = list(compress(pictures.classes, ~tested))
    if not parts.testing.any() or not untested or pictures.answers is not None:
        return []
    having = _count(len(untested), "class has", "classes have")
    return [f"{having} no test picture: {', '.join(untested[:5])}"]


def _notes_of_files(read: ReadPictures) -> list[str]:
    notes = []
    if read.left_out:
        notes.append(pages_sentence(read.left_out))
    if read.broken:
        n_broken = _count(len(read.broken), "broken picture is", "broken pictures are")
        notes.append(f"{n_broken} left out, such as {read.broken[0]}")
    return notes


def _values_of(images: np.ndarray, pictures: PictureSet) -> TrainingValues | None:
    """Return the values that images had before they became bytes."""
    if images.ndim < 3 or images.dtype != np.uint8:
        return None
    low, high = pictures.values or BYTE
    kind = "bytes" if (low, high) == BYTE else "other"
    arrays = "rasters" if pictures.kind == "prepared" else "pictures"
    return TrainingValues(low, high, kind, arrays)


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
