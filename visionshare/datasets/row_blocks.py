"""Zarr groups and HDF5 files of images and labels, local or in storage, read by blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from visionshare.datasets.hdf5 import hdf5_array
from visionshare.errors import DataError, InputError
from visionshare.files.storage import open_file
from visionshare.machine.memory import check_fits

__all__ = ["has_rows", "is_zarr", "read_rows", "row_blocks"]

# Bytes of a block's images, about: blocks are partitions.
_BLOCK = 64 << 20
# Bytes of an HDF5 file that are fetched together: its directory is small and anywhere.
_FETCHED = 1 << 20
_HDF5 = (".h5", ".hdf5")
# What packages of these formats raise for files that are broken, or of another kind.
_BROKEN = (OSError, ValueError, RuntimeError, ImportError, TypeError, KeyError)


def is_zarr(name: str) -> bool:
    """Return whether a path or URL is that of a Zarr group, or of a block of its rows."""
    return _plain(name).endswith(".zarr")


def has_rows(name: str) -> bool:
    """Return whether a path or URL is read by blocks of rows: of Zarr or HDF5."""
    return is_zarr(name) or _plain(name).endswith(_HDF5)


def row_blocks(name: str) -> list[str]:
    """Return the names of blocks of rows, ``NAME#START:STOP``, of whole chunks each."""
    with _arrays(name) as (images, _):
        m, chunks = images.shape[0], images.chunks
        step = max(1, chunks[0]) if chunks else 1
        row = max(1, int(np.prod(images.shape[1:])) * images.dtype.itemsize)
    step *= max(1, _BLOCK // (step * row))
    return [f"{name}#{start}:{min(start + step, m)}" for start in range(0, m, step)]


def read_rows(block: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels of a block of :func:`row_blocks`; no other rows are fetched."""
    name, _, rows = block.rpartition("#")
    start, stop = map(int, rows.split(":"))
    with _arrays(name) as (images, labels):
        row = float(np.prod(images.shape[1:])) * images.dtype.itemsize
        check_fits(block, (stop - start) * row, "a file with smaller chunks")
        try:
            found = np.asarray(labels[start:stop])
            if found.dtype == object:
                texts = [v.decode() if isinstance(v, bytes) else str(v) for v in found]
                # An array of texts is as wide as the longest of them, for each.
                width = 4 * max(map(len, texts), default=0)
                check_fits(f"{block}: labels", len(texts) * width, "shorter labels")
                found = np.array(texts, str)
            return np.asarray(images[start:stop]), found
        except DataError:
            raise
        except _BROKEN as error:
            raise DataError(f"{block}: cannot be read ({error})") from None


def _plain(name: str) -> str:
    return name.split("#")[0].rstrip("/").lower()


@contextmanager
def _arrays(name: str) -> Iterator[tuple[Any, Any]]:
    """Give images and labels, of which rows are read when they are asked for."""
    with _zarr_arrays(name) if is_zarr(name) else _hdf5_arrays(name) as (images, labels):
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
    try:
        group = zarr.open_group(name, mode="r")
        images, labels = group["images"], group["labels"]
    except KeyError as error:
        raise DataError(f"{name}: no array {error}; it needs 'images' and 'labels'") from None
    except _BROKEN as error:
        raise DataError(f"{name}: no Zarr group that can be read ({error})") from None
    if not all(isinstance(values, zarr.Array) for values in (images, labels)):
        raise DataError(f"{name}: 'images' and 'labels' are no arrays")
    yield images, labels


@contextmanager
def _hdf5_arrays(name: str) -> Iterator[tuple[Any, Any]]:
    import h5py

    with open_file(name, _FETCHED) as handle:
        try:
            file = h5py.File(handle, "r")
        except DataError:
            raise
        except _BROKEN as error:
            raise DataError(f"{name}: invalid HDF5 file ({str(error)[:200]})") from None
        with file:
            yield (
                hdf5_array(file, handle, "images", name),
                hdf5_array(file, handle, "labels", name),
            )
