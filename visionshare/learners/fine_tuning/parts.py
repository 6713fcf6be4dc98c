"""Training images in parts, each with an order of its own and images that validate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from visionshare.class_labels import quoted
from visionshare.errors import InputError
from visionshare.learners.fine_tuning.settings import FineTuning

__all__ = [
    "PartSplit",
    "Teacher",
    "TrainingPart",
    "TuningPart",
    "batch_bounds",
    "check_parts",
    "order_of",
]


class Teacher(Protocol):
    """A teacher: scores of images, (n, k), the columns in the order of its classes.

    :class:`visionshare.CompactClassifier` is one.
    """

    classes_: np.ndarray

    def decision_function(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray: ...


def order_of(theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Return where each of our classes is among a teacher's."""
    position = {name: i for i, name in enumerate(theirs.tolist())}
    if set(position) != set(ours.tolist()):
        given = f"classes {quoted(theirs)}"
        raise InputError("teacher", given, f"the classifier's: {quoted(ours)}")
    return np.array([position[name] for name in ours.tolist()])


class TuningPart:
    """Some of the training images and their classes, as they travel to where they are used."""

    def __init__(self, images: np.ndarray | Callable[[int], np.ndarray], y: np.ndarray) -> None:
        self.images, self.y = images, y

    def of_epoch(self, epoch: int) -> np.ndarray:
        """Return an epoch's images."""
        images = np.asarray(self.images(epoch) if callable(self.images) else self.images)
        if len(images) != len(self.y):
            raise InputError("images", len(images), f"{len(self.y)} images, as many as labels")
        return images


class PartSplit:
    """Which images of a part train, and which validate."""

    def __init__(self, number: int, n: int, settings: FineTuning) -> None:
        order = np.random.default_rng([settings.random_state, 1, number]).permutation(n)
        n_validation = round(settings.validation_fraction * n)
        self.validation, self.training = (
            np.sort(order[:n_validation]),
            np.sort(order[n_validation:]),
        )
        self._seed, self._number = settings.random_state, number

    def order(self, epoch: int) -> np.ndarray:
        """Return the training images in the order of an epoch."""
        return self.draws(0, epoch).permutation(self.training)

    def draws(self, kind: int, epoch: int) -> np.random.Generator:
        """Return a generator of the part's draws of a kind in an epoch."""
        return np.random.default_rng([self._seed, kind, epoch, self._number])


def check_parts(parts: Sequence[TuningPart], settings: FineTuning) -> np.ndarray:
    """Return how many images of each part train."""
    n = np.array([len(PartSplit(i, len(p.y), settings).training) for i, p in enumerate(parts)])
    if n.sum() == 0:
        accepted = "a smaller one: no image is left to train on"
        raise InputError("validation_fraction", settings.validation_fraction, accepted)
    return n


def batch_bounds(sizes: np.ndarray, batch: int) -> np.ndarray:
    """Return where each part's share of each step begins, (parts, steps + 1)."""
    # Steps + 1). Each step has about ``batch`` images, of each part in proportion to what it has.
    total = int(sizes.sum())
    ends = np.minimum(np.arange(-(-total // batch) + 1) * batch, total)
    return np.asarray(sizes[:, None] * ends // total)


class TrainingPart:
    """A part in use: its images of the current epoch, and what a teacher says of them."""

    def __init__(self, number: int, part: TuningPart, settings: FineTuning) -> None:
        self.y, self._part = part.y, part
        self.split = PartSplit(number, len(part.y), settings)
        self._last_images: tuple[int, np.ndarray] | None = None
        self._last_taught: tuple[np.ndarray, np.ndarray] | None = None

    def images(self, epoch: int) -> np.ndarray:
        """Return an epoch's images."""
        # The first epoch's are asked for by all that comes before it too.
        if self._last_images is None or self._last_images[0] != epoch:
            self._last_images = epoch, self._part.of_epoch(epoch)
        return self._last_images[1]

    def taught(
        self, images: np.ndarray, probabilities: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return a teacher's probabilities (k, m) of images; those of the same images once."""
        if self._last_taught is None or self._last_taught[0] is not images:
            self._last_taught = images, probabilities(images)
        return self._last_taught[1]
