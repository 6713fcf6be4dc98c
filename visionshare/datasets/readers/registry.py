"""The readers of labeled pictures, one line each: folders, tables, tars, Parquet and arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from visionshare.datasets.readers.arrays import array_pictures
from visionshare.datasets.readers.class_folders import folder_pictures, has_class_folders
from visionshare.datasets.readers.idx import is_idx, labels_beside, read_idx
from visionshare.datasets.readers.npz import read_npz
from visionshare.datasets.readers.parquet import has_parquet, parquet_pictures
from visionshare.datasets.readers.picture_set import PictureSet
from visionshare.datasets.readers.stored_arrays import has_stored_arrays, read_rows
from visionshare.datasets.readers.tables import has_table, table_pictures
from visionshare.datasets.readers.targets import Target
from visionshare.datasets.readers.tars import has_tars, tar_pictures
from visionshare.errors import DataError
from visionshare.errors.names import nothing_named


class Reader(NamedTuple):
    """A kind of sources: which paths it takes, and what returns their pictures, undecoded."""

    name: str
    takes: Callable[[Path], bool]
    open: Callable[[Path], PictureSet]


def _open_npz(path: Path) -> PictureSet:
    return array_pictures(path, read_npz(path), path.stat().st_size)


def _open_idx(path: Path) -> PictureSet:
    arrays = {"images": read_idx(path), "labels": read_idx(labels_beside(path))}
    return array_pictures(path, arrays, path.stat().st_size, "prepared")


def _open_stored_arrays(path: Path) -> PictureSet:
    images, labels = read_rows(str(path))
    return array_pictures(path, {"images": images, "labels": labels}, images.nbytes)


_PACKED = (
    Reader(".parquet", has_parquet, parquet_pictures),
    Reader(".tar", has_tars, tar_pictures),
)
#: The first reader that takes a path opens it.
READERS = (
    *_PACKED,
    Reader(".csv, .jsonl", has_table, table_pictures),
    Reader(".npz", lambda path: path.suffix.lower() == ".npz", _open_npz),
    Reader(".h5, .zarr", lambda path: has_stored_arrays(str(path)), _open_stored_arrays),
    Reader("IDX", is_idx, _open_idx),
    Reader("a folder of class folders", os.path.isdir, folder_pictures),
)


def find_pictures(source: str | os.PathLike[str], target: Target | None = None) -> PictureSet:
    """Return the pictures of a folder or a file with their labels or values; none is decoded."""
    path = Path(source)
    if not os.path.exists(path):
        raise DataError(nothing_named(source, "folder or file"))
    if target is not None:
        if not has_table(path):
            accepted = "values and several labels are read from a table, a .csv or .jsonl file"
            raise DataError(f"{path}: no table; {accepted}")
        return table_pictures(path, target)
    reader = next((reader for reader in READERS if reader.takes(path)), None)
    if reader is None:
        known = ", ".join(reader.name for reader in READERS)
        raise DataError(f"{path}: unknown kind of data file (known: {known})")
    if reader in _PACKED and path.is_dir() and has_class_folders(path):
        found = folder_pictures(path)
        stray = f"{reader.name} files are not used: folders hold the classes"
        return replace(found, notes=(stray, *found.notes))
    return reader.open(path)
