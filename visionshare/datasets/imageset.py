"""Images with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.answers import Answers
from visionshare.class_labels import quoted
from visionshare.datasets.copies import groups_of_copies, joined_groups
from visionshare.errors import DataError


@dataclass(frozen=True)
class ImageSet:
    """Images and the class of each.

    Attributes
    ----------
    images : ndarray of shape (n, H, W), (n, H, W, C) or (n, p)
        uint8 or float.
    labels : ndarray of shape (n,), int64
        Indexes into ``classes``.
    classes : tuple of str
        Names of the classes.
    name : str
    names : tuple of str, optional
        Of the images' files.
    split : str, optional
        The part of a data set that it is, such as "test"; None of a set without such parts.
    values : tuple of float, optional
        What became 0 and 255 in arrays that were no bytes.
    taught : ndarray of shape (n, n_classes), optional
        The probabilities that a teacher gives each image.
    groups : ndarray of shape (n,), int64, optional
        Images of a group, such as photographs of one object, train together or test together.
    answers : Answers, optional
        What the images show, where that is no class: labels are then numbers of its levels.
    weights : ndarray of shape (n,), float64, optional
        What each image counts in learning; all count 1 when omitted.

    Examples
    --------
    >>> import numpy as np
    >>> images = ImageSet(np.zeros((2, 3, 3), np.uint8), np.array([0, 1]), ("a", "b"), "demo")
    >>> len(images), images.subset([1]).labels.tolist()
    (2, [1])
    """

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    name: str
    names: tuple[str, ...] | None = None
    split: str | None = None
    values: tuple[float, float] | None = None
    taught: np.ndarray | None = None
    groups: np.ndarray | None = None
    answers: Answers | None = None
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.images.ndim not in (2, 3, 4) or len(self.images) != len(self.labels):
            shapes = f"images {self.images.shape}, labels {self.labels.shape}"
            raise DataError(f"{self.name}: {shapes}: one label per image is needed")
        outside = len(self.labels) and (
            self.labels.min() < 0 or self.labels.max() >= len(self.classes)
        )
        if self.labels.ndim != 1 or outside:
            raise DataError(f"{self.name}: labels outside of {len(self.classes)} classes")
        if self.names is not None and len(self.names) != len(self.images):
            raise DataError(f"{self.name}: {len(self.names)} names of {len(self.images)} images")

    def __len__(self) -> int:
        return len(self.images)

    def subset(self, ids: np.ndarray | slice | list[int]) -> ImageSet:
        """Return the images with these indices."""
        kept: dict[str, Any] = {"images": self.images[ids], "labels": self.labels[ids]}
        for name in ("taught", "groups", "weights"):
            values = getattr(self, name)
            kept[name] = None if values is None else values[ids]
        names = self.names
        if names is not None:
            names = tuple(names[i] for i in np.arange(len(names))[ids])
        answers = None if self.answers is None else self.answers.subset(ids)
        return replace(self, **kept, names=names, answers=answers)

    @property
    def kept_together(self) -> np.ndarray:
        """Numbers of what trains or tests together, (n,): groups, and copies of an image."""
        copies = groups_of_copies(self.images)
        return copies if self.groups is None else joined_groups(copies, self.groups)

    def of_classes(self, classes: Sequence[str]) -> ImageSet:
        """Return the images of these classes alone, and the classes in this order."""
        unknown = [name for name in classes if name not in self.classes]
        if unknown or not classes or len(set(classes)) < len(classes):
            given = quoted(unknown or classes) or "none"
            raise DataError(
                f"{self.name}: classes {given}; it has, each once: {quoted(self.classes)}"
            )
        new_labels = np.full(len(self.classes), -1)
        new_labels[[self.classes.index(name) for name in classes]] = np.arange(len(classes))
        kept = np.flatnonzero(new_labels[self.labels] >= 0)
        labels = new_labels[self.labels[kept]].astype(np.int64)
        return replace(self.subset(kept), labels=labels, classes=tuple(classes))
