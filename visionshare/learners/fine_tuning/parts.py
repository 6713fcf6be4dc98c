"""Training images in parts: each part has an order of its own and images that validate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from visionshare.class_labels import quoted
from visionshare.datasets.intake import as_rasters
from visionshare.errors import InputError
from visionshare.learners.fine_tuning.settings import FineTuning
from visionshare.losses import SoftTargets


class Teacher(Protocol):
    """A teacher: scores of images, (n, k), the columns in the order of its classes.

    :class:`visionshare.CompactClassifier` is one.
    """

    classes_: np.ndarray

    def decision_function(self, images: np.ndarray, n_jobs: int = 1) -> np.ndarray: ...


@dataclass(frozen=True)
class SoftTeacher:
    """A teacher's softened probabilities, in the order of the classifier's classes."""

    teacher: Teacher
    order: np.ndarray
    softened: SoftTargets

    @classmethod
    def of(cls, teacher: Teacher, classes: np.ndarray, temperature: float) -> SoftTeacher:
        """Return a teacher of the same classes; raise an InputError if it has others."""
        position = {name: i for i, name in enumerate(teacher.classes_.tolist())}
        if set(position) != set(classes.tolist()):
            given = f"classes {quoted(teacher.classes_)}"
            raise InputError("teacher", given, f"the classifier's: {quoted(classes)}")
        order = np.array([position[name] for name in classes.tolist()])
        return cls(teacher, order, SoftTargets(temperature))

    def probabilities(self, images: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return probabilities (k, m) of images."""
        scores = self.teacher.decision_function(as_rasters(images), n_jobs)[:, self.order]
        return self.softened.softmax(np.ascontiguousarray(scores.T, np.float32))


def softened_parts(
    probabilities: np.ndarray, classes: np.ndarray, sizes: list[int], temperature: float
) -> list[np.ndarray]:
    """Return softened probabilities (k, m) of each part, of a table (n, k) for all images."""
    table = np.asarray(probabilities, np.float32)
    if table.shape != (sum(sizes), len(classes)) or not np.all((table >= 0) & (table <= 1)):
        accepted = f"probabilities of shape {(sum(sizes), len(classes))}: images by classes"
        raise InputError("teacher", f"numbers of shape {table.shape}", accepted)
    logs = np.log(np.maximum(table.T, np.finfo(np.float32).tiny))
    softened = SoftTargets(temperature).softmax(logs)
    return np.split(softened, np.cumsum(sizes)[:-1], axis=1)


class ImagePart:
    """A part of the training images, where it is used; it keeps what the current epoch needs."""

    def __init__(
        self,
        images: np.ndarray | Callable[[int], np.ndarray],
        n: int,
        teacher: SoftTeacher | np.ndarray | None = None,
    ) -> None:
        self._images = images
        self._teacher = teacher
        self._last_images: tuple[int, np.ndarray] | None = None
        self._last_taught: tuple[np.ndarray, np.ndarray] | None = None
        self.shape = (n,)
        self.n_jobs = 1

    def load(self, host: Any) -> ImagePart:
        """Return the part itself: see :class:`visionshare.distributed.blocks.PartitionBlock`."""
        return self

    def images(self, epoch: int) -> np.ndarray:
        """Return an epoch's images; an InputError if they are not as many as the labels."""
        # The first epoch's are asked for by all that comes before it too.
        if self._last_images is None or self._last_images[0] != epoch:
            images = np.asarray(self._images(epoch) if callable(self._images) else self._images)
            if len(images) != self.shape[0]:
                accepted = f"{self.shape[0]} images, as many as labels"
                raise InputError("images", len(images), accepted)
            self._last_images = epoch, images
        return self._last_images[1]

    def taught(self, epoch: int) -> np.ndarray | None:
        """Return the teacher's probabilities (k, m) of an epoch's images; None without one."""
        if self._teacher is None or isinstance(self._teacher, np.ndarray):
            return self._teacher
        images = self.images(epoch)
        if self._last_taught is None or self._last_taught[0] is not images:
            self._last_taught = images, self._teacher.probabilities(images, self.n_jobs)
        return self._last_taught[1]


class PartSplit:
    """Which images of a part train and which validate, both ascending."""

    def __init__(self, number: int, n: int, settings: FineTuning) -> None:
        self._seed = settings.random_state
        self._number = number
        order = np.random.default_rng([self._seed, 1, number]).permutation(n)
        n_validation = round(settings.validation_fraction * n)
        self.validation = np.sort(order[:n_validation])
        self.training = np.sort(order[n_validation:])

    def order(self, epoch: int) -> np.ndarray:
        """Return the training images in the order of an epoch."""
        rng = np.random.default_rng([self._seed, 0, epoch, self._number])
        return rng.permutation(self.training)


def batch_bounds(sizes: np.ndarray, batch: int) -> np.ndarray:
    """Return where each part's share of each step begins, and the last ends, (parts, steps + 1)."""
    # Each step has about ``batch`` images, of each part in proportion to what it has.
    total = int(sizes.sum())
    ends = np.minimum(np.arange(-(-total // batch) + 1) * batch, total)
    return sizes[:, None] * ends // total
