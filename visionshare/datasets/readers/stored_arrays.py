"""Zarr groups and HDF5 files of images and labels, local or in storage, read by blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.readers.hdf5 import hdf5_array
from visionshare.errors import DataError, InputError
from visionshare.files.storage import open_file
from visionshare.machine.memory import check_fits

# Bytes of a block's images, about: blocks are partitions.
_BLOCK = 64 << 20
# Bytes of an HDF5 file that are fetched together: its directory is small and anywhere.
_FETCHED = 1 << 20


def is_zarr(name: str) -> bool:
    """Return whether a path or URL is that of a Zarr group, or of a block of its rows."""
    return _plain(name).endswith(".zarr")


def has_stored_arrays(name: str) -> bool:
    """Return whether a path or URL is that of a Zarr group, an HDF5 file, or a block of rows."""
    return _plain(name).endswith((".zarr", ".h5", ".hdf5"))


def row_blocks(name: str) -> list[str]:
    """Return the names of blocks of rows, ``NAME#START:STOP``, of whole chunks each."""
    with _arrays(name) as (images, _):
        n_rows = images.shape[0]
        step = max(1, images.chunks[0]) if images.chunks else 1
        step *= max(1, _BLOCK // int(step * max(1, _row_bytes(images))))
    return [f"{name}#{start}:{min(start + step, n_rows)}" for start in range(0, n_rows, step)]


def read_rows(block: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels of a file, or of a block of :func:`row_blocks` alone."""
    name, _, rows = block.partition("#")
    with _arrays(name) as (images, labels):
        start, stop = map(int, rows.split(":")) if rows else (0, images.shape[0])
        check_fits(block, (stop - start) * _row_bytes(images), "a file with smaller chunks")
        return np.asarray(images[start:stop]), np.asarray(labels[start:stop])


def _row_bytes(images: Any) -> float:
    return float(np.prod(images.shape[1:])) * images.dtype.itemsize


def _plain(name: str) -> str:
    return name.split("#")[0].rstrip("/").lower()


@contextmanager
def _arrays(name: str) -> Iterator[tuple[Any, Any]]:
    """Give images and labels, of which rows are read when they are asked for."""
    opened = _zarr_arrays if is_zarr(name) else _hdf5_arrays
    with file_errors(name, "Zarr" if is_zarr(name) else "HDF5"), opened(name) as (images, labels):
        if len(images.shape) < 1 or labels.shape != images.shape[:1]:
            raise DataError(f"{name}: labels of shape {labels.shape} for images {images.shape}")
        yield images, labels


@contextmanager
def _zarr_arrays(name: str) -> Iterator[tuple[Any, Any]]:
    try:
        import zarr
    except ImportError:
        accepted = 'a package for Zarr: `pip install "visionshare[zarr]"`'
        raise InputError("file", name, accepted) from None
    group = zarr.open_group(name, mode="r")
    for array in ("images", "labels"):
        if array not in group:
            raise DataError(f"{name}: no array {array!r}; it needs 'images' and 'labels'")
        if not isinstance(group[array], zarr.Array):
            raise DataError(f"{name}: 'images' and 'labels' are not arrays")
    yield group["images"], group["labels"]


@contextmanager
def _hdf5_arrays(name: str) -> Iterator[tuple[Any, Any]]:
    import h5py

    with open_file(name, _FETCHED) as handle, h5py.File(handle, "r") as file:
        yield hdf5_array(file, handle, "images", name), hdf5_array(file, handle, "labels", name)
