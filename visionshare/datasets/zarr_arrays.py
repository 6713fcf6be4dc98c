"""Zarr groups of images and labels, local or in storage, read by blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.errors import DataError, InputError
from visionshare.memory import check_fits

__all__ = ["is_zarr", "read_zarr_rows", "zarr_blocks"]

# Bytes of a block's images, about: blocks are partitions.
_BLOCK = 64 << 20


def is_zarr(name: str) -> bool:
    """Return whether a path or URL is that of a Zarr group, or of a block of its rows.

    Examples
    --------
    >>> is_zarr("s3://bucket/train.zarr"), is_zarr("train.zarr#0:512"), is_zarr("a.tar")
    (True, True, False)
    """
    return name.split("#")[0].rstrip("/").lower().endswith(".zarr")


def zarr_blocks(name: str) -> list[str]:
    """Return the names of blocks of rows, ``NAME#START:STOP``, of whole chunks each.

    Parameters
    ----------
    name : str
        Path or URL of a group with arrays ``images`` and ``labels``.

    Raises
    ------
    DataError
        If it cannot be read, or has no such arrays.
    InputError
        If the package zarr is not installed.
    """
    images, _ = _arrays(name)
    m, step = images.shape[0], max(1, images.chunks[0])
    row = max(1, int(np.prod(images.shape[1:])) * images.dtype.itemsize)
    step *= max(1, _BLOCK // (step * row))
    return [f"{name}#{start}:{min(start + step, m)}" for start in range(0, m, step)]


def read_zarr_rows(block: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels of a block of :func:`zarr_blocks`.

    Raises
    ------
    DataError
        If it cannot be read.
    MemoryLimitError
        If it does not fit.
    """
    name, _, rows = block.rpartition("#")
    start, stop = map(int, rows.split(":"))
    images, labels = _arrays(name)
    row = float(np.prod(images.shape[1:])) * images.dtype.itemsize
    check_fits(block, (stop - start) * row, "a group with smaller chunks")
    try:
        return np.asarray(images[start:stop]), np.asarray(labels[start:stop])
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(f"{block}: cannot be read ({error})") from None


def _arrays(name: str) -> tuple[Any, Any]:
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
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise DataError(f"{name}: no Zarr group that can be read ({error})") from None
    if not all(isinstance(values, zarr.Array) for values in (images, labels)):
        raise DataError(f"{name}: 'images' and 'labels' are no arrays")
    if len(images.shape) < 1 or labels.shape != images.shape[:1]:
        raise DataError(f"{name}: labels of shape {labels.shape} for images {images.shape}")
    return images, labels
