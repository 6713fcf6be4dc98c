"""One entry for one's own labeled pictures: folders, tables, tars, arrays and Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from visionshare.class_labels import in_order
from visionshare.datasets.arrays import read_hdf5, read_npz
from visionshare.datasets.bounds import check_count
from visionshare.datasets.idx import is_idx, read_idx
from visionshare.datasets.imageset import ImageSet
from visionshare.datasets.parquet import has_parquet, parquet_pictures
from visionshare.datasets.pictures.folders import (
    folder_pictures,
    has_class_folders,
    role_of,
    roles_of,
)
from visionshare.datasets.pictures.labeled import Content, PictureSet
from visionshare.datasets.pictures.tables import TABLES, find_table, table_pictures
from visionshare.datasets.pictures.tars import find_tars, is_tar, tar_pictures
from visionshare.datasets.pictures.value_ranges import are_pictures, as_bytes, value_range
from visionshare.errors import DataError
from visionshare.errors.names import nothing_named

__all__ = ["KINDS", "find_pictures", "labeled_arrays"]

KINDS = "a folder of class folders, .csv, .jsonl, .npz, .h5, .parquet, .tar or IDX"
_MAX_CLASSES = 50_000
# Names of arrays in a file: images and labels, alone or of a part.
_IMAGES, _LABELS = ("images", "image", "x", "data"), ("labels", "label", "y", "targets")


def find_pictures(source: str | os.PathLike[str]) -> PictureSet:
    """Return the labeled pictures of a folder or a file; none is decoded."""
    path = Path(source)
    if os.path.isdir(path):
        return _in_folder(path)
    if not os.path.isfile(path):
        raise DataError(nothing_named(source, "folder or file"))
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return table_pictures(path)
    if is_tar(path):
        return tar_pictures([path], path.name.split(".")[0])
    if suffix == ".parquet":
        return parquet_pictures([path], path.stem)
    if suffix == ".npz":
        return _array_pictures(path, read_npz(path))
    if suffix in (".h5", ".hdf5"):
        return _array_pictures(path, read_hdf5(path, ("images", "labels")))
    if is_idx(path):
        name = path.name.replace("images", "labels").replace("idx3", "idx1")
        arrays = {"images": read_idx(path), "labels": read_idx(path.with_name(name))}
        return _array_pictures(path, arrays, "prepared")
    raise DataError(f"{path}: unknown kind of data file (known: {KINDS})")


def _in_folder(folder: Path) -> PictureSet:
    tars, tables = find_tars(folder), has_parquet(folder)
    if (tars or tables) and has_class_folders(folder):
        found = folder_pictures(folder)
        stray = tars[0].name if tars else "a Parquet file"
        return replace(
            found, notes=(f"{stray} is not used: folders hold the classes", *found.notes)
        )
    if tables:
        return parquet_pictures([folder], folder.resolve().name)
    if tars:
        return tar_pictures(tars, folder.resolve().name)
    if (table := find_table(folder)) is not None:
        try:
            found = table_pictures(table)
        except DataError as error:
            # A table of something else lies beside folders of classes.
            try:
                return folder_pictures(folder)
            except DataError:
                raise error from None
        return replace(found, notes=(f"classes are those of {table.name}", *found.notes))
    return folder_pictures(folder)


def _array_pictures(path: Path, arrays: dict[str, np.ndarray], kind: str = "arrays") -> PictureSet:
    parts = _parts(path, arrays)
    n_images = sum(images.shape[0] for _, images, _ in parts if images.ndim)
    check_count(str(path), n_images, path.stat().st_size)
    sets = [labeled_arrays(path, images, labels) for _, images, labels in parts]
    kinds = sorted({str(part.images.dtype.newbyteorder("=")) for part in sets})
    if len(kinds) > 1:
        raise DataError(f"{path}: images of several types ({', '.join(kinds)}); one is needed")
    given = [role for (role, *_), part in zip(parts, sets, strict=True) for _ in range(len(part))]
    roles = roles_of(given, str(path))
    notes: tuple[str, ...] = ()
    if len({part.images.shape[1:] for part in sets}) > 1:
        raise DataError(f"{path}: images of several shapes")
    sets, values = _in_bytes(path, [role for role, *_ in parts], sets)
    if values is not None:
        low, high = values
        notes += (f"{kinds[0]} images become bytes: {low:g} is 0, {high:g} is 255",)
    # Labels of two parts with the same name mean the same class.
    classes = in_order(name for part in sets for name in part.classes)
    place = {name: number for number, name in enumerate(classes)}
    tables = [np.array([place[name] for name in part.classes], np.int64) for part in sets]
    labels = np.concatenate([table[part.labels] for table, part in zip(tables, sets, strict=True)])

    names = [f"{path}: image" if role is None else f"{path}: {role} image" for role, *_ in parts]
    blocks = tuple(zip(names, (part.images for part in sets), strict=True))

    def contents() -> Iterator[Content]:
        for where, images in blocks:
            for number, pixels in enumerate(images):
                yield Content(f"{where} {number}", pixels)

    return PictureSet(path.stem, classes, labels, roles, contents, notes, kind, values, blocks)


def _in_bytes(
    path: Path, roles: list[str | None], sets: list[ImageSet]
) -> tuple[list[ImageSet], tuple[float, float] | None]:
    """Return parts of bytes and what became 0 and 255; None where nothing is changed."""
    # Vectors, and images of other channels than pictures have, stay as they are.
    if sets[0].images.dtype == np.uint8 or not are_pictures(sets[0].images):
        return sets, None
    training = [
        part.images for role, part in zip(roles, sets, strict=True) if role in ("train", None)
    ]
    values = value_range(str(path), training)
    named = [f"{path}: {role} images" if role else str(path) for role in roles]
    return [
        replace(part, images=as_bytes(name, part.images, values))
        for name, part in zip(named, sets, strict=True)
    ], values


def _parts(
    path: Path, arrays: dict[str, np.ndarray]
) -> list[tuple[str | None, np.ndarray, np.ndarray]]:
    """Return role, images and labels of each part of a file of arrays."""
    found: dict[str | None, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        words = name.lower().split("_")
        roles = [word for word in words if role_of(word)]
        kind = "_".join(word for word in words if role_of(word) is None)
        role = role_of(roles[0]) if roles else None
        if kind in _IMAGES:
            found.setdefault(role, {})["images"] = array
        elif kind in _LABELS:
            found.setdefault(role, {})["labels"] = array
    whole = {role: part for role, part in found.items() if len(part) == 2}
    if not whole:
        has = sorted(arrays)[:10]
        missing = "images" if "images" not in found.get(None, {}) else "labels"
        raise DataError(f"{path}: no array {missing!r}; it has {has}")
    return [(role, part["images"], part["labels"]) for role, part in whole.items()]


def labeled_arrays(path: Path, images: np.ndarray, labels: np.ndarray) -> ImageSet:
    """Return images and labels of a file, once they fit each other."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or images.ndim < 1:
        raise DataError(f"{path}: labels of shape {labels.shape} for images {images.shape}")
    if labels.dtype.kind not in "iuUSO":
        raise DataError(f"{path}: labels of {labels.dtype} are neither whole numbers nor text")
    if len(labels) != len(images):
        raise DataError(f"{path}: {len(labels)} labels for {len(images)} images")
    if images.dtype.kind not in "fiu":
        raise DataError(f"{path}: images of {images.dtype} are not numbers")
    try:
        names, numbers = _classes_of(path, labels)
    except DataError:
        raise
    except (ValueError, TypeError, SystemError) as error:
        # Bytes that are no text, or numbers that are no characters.
        raise DataError(f"{path}: labels that are no text ({error})") from None
    return ImageSet(images, numbers, names, path.stem)


def _classes_of(path: Path, labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the classes in order, and the number of each label."""
    if labels.dtype.kind not in "SUO":
        classes, index = np.unique(labels, return_inverse=True)
        _check_classes(path, len(classes))
        return tuple(map(str, classes)), index.astype(np.int64)
    # An array of texts would be as wide as the longest of them, for each.
    values = labels.tolist()
    # A label of many images is decoded once, and kept once.
    texts = {v: v.decode() if isinstance(v, bytes) else str(v) for v in set(values)}
    _check_classes(path, len(texts))
    names = in_order(set(texts.values()))
    numbers = {name: number for number, name in enumerate(names)}
    return names, np.array([numbers[texts[value]] for value in values], np.int64)


def _check_classes(path: Path, n: int) -> None:
    if n > _MAX_CLASSES:
        raise DataError(f"{path}: {n} different labels; accepted: at most {_MAX_CLASSES} classes")
