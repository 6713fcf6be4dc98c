"""Arrays of images and labels as labeled pictures: bytes, in one range for all of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from visionshare.datasets.pictures.value_ranges import are_pictures, as_bytes, value_range
from visionshare.datasets.readers.bounds import check_count
from visionshare.datasets.readers.labels import classes_of, label_names, role_of, roles_of
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError

# Names of arrays in a file: images and labels, alone or of a part.
_IMAGES = ("images", "image", "x", "data")
_LABELS = ("labels", "label", "y", "targets")


class _Part(NamedTuple):
    """The images and labels of one role."""

    role: str | None
    images: np.ndarray
    labels: np.ndarray


def array_pictures(
    path: str | Path, arrays: Mapping[str, np.ndarray], n_bytes: int, kind: str = "arrays"
) -> PictureSet:
    """Return the pictures in arrays of a file of so many bytes."""
    # 1) the parts fit each other
    parts = _parts(path, arrays)
    first = parts[0].images
    for part in parts:
        if part.images.ndim < 1:
            raise DataError(f"{path}: a single value in place of images")
        if part.images.dtype.kind not in "fiu":
            raise DataError(f"{path}: images of {part.images.dtype} are not numbers")
        if part.images.dtype.newbyteorder("=") != first.dtype.newbyteorder("="):
            kinds = f"{first.dtype}, {part.images.dtype}"
            raise DataError(f"{path}: images of several types ({kinds}); one is needed")
        if part.images.shape[1:] != first.shape[1:]:
            raise DataError(f"{path}: images of several shapes")
    # 2) each image has a label
    names: list[str] = []
    roles: list[str | None] = []
    # Before texts are made of labels: each takes time.
    check_count(str(path), sum(len(part.images) for part in parts), n_bytes)
    for part in parts:
        labels = label_names(part.labels, str(path))
        if len(labels) != len(part.images):
            raise DataError(f"{path}: {len(labels)} labels for {len(part.images)} images")
        names += labels
        roles += [part.role] * len(labels)
    classes, numbers = classes_of(names, roles, str(path))
    # 3) pictures become bytes; vectors, and images of other channels, stay as they are
    values = None
    notes = []
    images = [part.images for part in parts]
    if first.dtype != np.uint8 and are_pictures(first):
        training = [part.images for part in parts if part.role in ("train", None)]
        values = value_range(str(path), training)
        for i, part in enumerate(parts):
            name = f"{path}: {part.role} images" if part.role else str(path)
            images[i] = as_bytes(name, part.images, values)
        notes.append(f"{first.dtype} images become bytes: {values[0]:g} is 0, {values[1]:g} is 255")
    titles = [f"{path}: {part.role} image" if part.role else f"{path}: image" for part in parts]
    blocks = tuple(zip(titles, images, strict=True))

    def contents() -> Iterator[Content]:
        for title, block in blocks:
            for number, pixels in enumerate(block):
                yield Content(f"{title} {number}", pixels)

    return PictureSet(
        Path(path).stem, classes, numbers, roles_of(roles, str(path)), contents, tuple(notes), kind,
        values, blocks,
    )  # fmt: skip


def _parts(path: str | Path, arrays: Mapping[str, np.ndarray]) -> list[_Part]:
    """Return the parts of a file of arrays, such as x_train, y_train, x_test and y_test."""
    images: dict[str | None, np.ndarray] = {}
    labels: dict[str | None, np.ndarray] = {}
    for name, array in arrays.items():
        words = name.lower().split("_")
        role = next(filter(None, map(role_of, words)), None)
        kind = "_".join(word for word in words if role_of(word) is None)
        if kind in _IMAGES:
            images[role] = array
        elif kind in _LABELS:
            labels[role] = array
    parts = [_Part(role, images[role], labels[role]) for role in images if role in labels]
    if not parts:
        missing = "labels" if None in images else "images"
        raise DataError(f"{path}: no array {missing!r}; it has {sorted(arrays)[:10]}")
    return parts
