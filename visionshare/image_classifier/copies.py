"""Held-out examples: a copy of one is never among those that train."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visionshare.class_labels import label_array
from visionshare.datasets import ImageSet
from visionshare.datasets.copies import group_numbers, groups_of_copies
from visionshare.datasets.image_kinds import as_array
from visionshare.datasets.sampling import stratified_mask
from visionshare.errors import InputError


def held_out_mask(images: Any, labels: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Return a mask (n,) of a random fraction of each class, copies together."""
    # As :func:`visionshare.datasets.sampling.stratified_mask` draws it from images of any form.
    groups = groups_of_copies(_entries(images))
    if len(groups) != len(labels):
        raise InputError("y", len(labels), f"a class for each of {len(groups)} images")
    return stratified_mask(labels, fraction, seed, groups)


def _entries(images: Any) -> Iterable[Any]:
    if hasattr(images, "toarray"):
        return (row.toarray() for row in images.tocsr())
    if hasattr(images, "iloc"):
        return images.to_numpy()
    return as_array(images)


@dataclass(frozen=True)
class Parts:
    """Rows of images to learn from, and of those to compare by, of training or of validation."""

    training: ImageSet
    learning: np.ndarray
    compared_of: ImageSet
    compared: np.ndarray

    @property
    def validates(self) -> bool:
        """Whether validation images compare."""
        return self.compared_of is not self.training


def parts_of(
    training: ImageSet,
    seed: int,
    validation: ImageSet | None = None,
    most_learning: int = 20_000,
    most_compared: int = 5000,
) -> Parts:
    """Return rows to learn from, and some of each class to compare by."""
    # Those that compare are the validation images, or held out from the training images where
    # there are none; copies of one image are then in the same part.
    if validation is not None and len(validation):
        learns = np.ones(len(training), bool)
        compares = np.ones(len(validation), bool)
    else:
        fraction = 1 / 4 if len(training) <= 4000 else 1 / 6
        validation = training
        compares = stratified_mask(training.labels, fraction, seed, training.kept_together)
        learns = ~compares
    learning = _at_most(training.labels, learns, most_learning, seed)
    compared = _at_most(validation.labels, compares, most_compared, seed)
    return Parts(training, learning, validation, compared)


def grouped(images: ImageSet, groups: Any) -> ImageSet:
    """Return images with the groups that a user gives: labels of any kind, one for each."""
    if groups is None:
        return images
    labels = label_array(groups, "groups")
    if labels.shape != (len(images),):
        raise InputError("groups", labels.shape, f"a group for each of {len(images)} images")
    return replace(images, groups=group_numbers(labels.tolist()))


def _at_most(labels: np.ndarray, mask: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return so many of the rows in a mask at most, with the proportions of their classes."""
    rows = np.flatnonzero(mask)
    if len(rows) > most:
        rows = rows[stratified_mask(labels[rows], most / len(rows), seed)]
    return rows


def taken(images: ImageSet, rows: np.ndarray) -> ImageSet:
    """Return images by their rows; a part that is all of them needs no copy."""
    return images if len(rows) == len(images) else images.subset(rows)
