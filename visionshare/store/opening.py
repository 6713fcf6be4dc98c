"""Making and opening stores."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from visionshare.errors import InputError, StoreError
from visionshare.errors.inputs import checked_path
from visionshare.files.durable import is_partial, make_folder
from visionshare.files.fingerprints import images_fingerprint, spec_fingerprint
from visionshare.generators import FeatureFamily
from visionshare.generators.base import check_dtype
from visionshare.machine.resources import parse_size
from visionshare.store.manifest import (
    MANIFEST,
    MOST_COLUMNS,
    Manifest,
    read_manifest,
    write_manifest,
)
from visionshare.store.store_columns import StoreColumns
from visionshare.store.writer_lock import LOCK, writer_lock


def create_store(
    path: str | os.PathLike[str],
    family: FeatureFamily,
    images: np.ndarray,
    dtype: str = "float16",
    memory: str | int = "2GiB",
    n_jobs: int = 1,
) -> StoreColumns:
    """Make a store for a family's columns over images, or open the one that is there.

    Parameters
    ----------
    path : path-like
        Folder of the store.
    family : FeatureFamily
        Fitted and finite.
    images : ndarray
    dtype : {"float16", "float32"}, default "float16"
    memory : str or int, default "2GiB"
        Bound of what the store holds in memory.
    n_jobs : int, default 1

    Raises
    ------
    StoreError
        If the folder holds a store of other images, another family or another dtype, or something
        else, or if another process writes.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare import Pixels
    >>> images = np.arange(8.0).reshape(2, 2, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns = create_store(Path(folder, "store"), Pixels().fit(images), images)
    ...     columns.take([3]).ravel().tolist()
    [3.0, 7.0]
    """
    check_dtype(dtype)
    parse_size(memory)
    folder = checked_path("path", path)
    if not (folder / MANIFEST).exists():
        present = folder.iterdir() if folder.exists() else ()
        if not all(is_partial(file) or file.name in (LOCK, MANIFEST) for file in present):
            raise StoreError(f"{folder}: not empty, and no store; give another folder")
        # Where another process is faster, its store is opened.
        _write_first(folder, family, len(images), images_fingerprint(images), dtype)
    columns = open_store(folder, family, images, memory, n_jobs)
    if columns.dtype != dtype:
        raise StoreError(f"{folder}: holds {columns.dtype}, not {dtype}; give another folder")
    return columns


def create_empty_store(
    path: str | os.PathLike[str], family: FeatureFamily, m: int, images_sha256: str, dtype: str
) -> StoreColumns:
    """Make a store whose columns are evaluated elsewhere, see :meth:`StoreColumns.commit`.

    Examples
    --------
    >>> import tempfile
    >>> from visionshare import Pixels
    >>> images = np.arange(8.0).reshape(2, 2, 2)
    >>> family, identity = Pixels().fit(images), images_fingerprint(images)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     columns = create_empty_store(folder, family, 2, identity, "float32")
    ...     columns.commit(np.array([3]), np.array([[3, 7]], np.float32))
    ...     columns.missing.tolist()
    [0, 1, 2]
    """
    check_dtype(dtype)
    if family.n_features_ > MOST_COLUMNS:
        raise InputError("family", f"{family.n_features_} features", f"at most {MOST_COLUMNS}")
    folder = checked_path("path", path)
    if not _write_first(folder, family, m, images_sha256, dtype):
        raise StoreError(f"{folder}: holds a store already; open it, or give another folder")
    return open_store(folder, family)


def _write_first(
    folder: Path, family: FeatureFamily, m: int, images_sha256: str, dtype: str
) -> bool:
    """Write the first manifest of a store; return False where there is one by now."""
    state, arrays = family.to_state()
    digests = spec_fingerprint(state, arrays), images_sha256
    with writer_lock(make_folder(folder)):
        if (folder / MANIFEST).exists():
            return False
        write_manifest(folder, Manifest((m, family.n_features_), dtype, state, *digests))
    return True


def open_store(
    path: str | os.PathLike[str],
    family: FeatureFamily | None = None,
    images: np.ndarray | None = None,
    memory: str | int = "2GiB",
    n_jobs: int = 1,
) -> StoreColumns:
    """Open a store; with its family and images, columns that are missing can be evaluated.

    Raises
    ------
    StoreError
        If there is no valid store, or it belongs to other images or another family.

    Examples
    --------
    >>> open_store("nowhere")
    Traceback (most recent call last):
        ...
    visionshare.errors.StoreError: no folder of a store named 'nowhere'.
    """
    folder = checked_path("path", path)
    manifest = read_manifest(folder)
    if family is not None and manifest.family_sha256 != spec_fingerprint(*family.to_state()):
        raise StoreError(f"{folder}: belongs to another pool of features; give another folder")
    if images is not None and images_fingerprint(images) != manifest.images_sha256:
        raise StoreError(f"{folder}: belongs to other images; give another folder")
    return StoreColumns(folder, manifest, family, images, memory, n_jobs)
