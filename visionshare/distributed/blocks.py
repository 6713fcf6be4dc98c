"""Blocks: where the rows of a partition come from, and how they become columns."""

from __future__ import annotations

import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from visionshare.columns import ArrayColumns, Columns

__all__ = [
    "ArrayBlock", "Block", "ColumnSettings", "ImageBlock", "Room", "bounds_of", "partition_bounds",
]  # fmt: skip

# Of a process's bound: what columns in memory may take, and what a partition on disk may hold.
_IN_MEMORY, _OF_STORE = 2, 8
# So many partitions, where nobody says another number; more where each would have more rows.
_PARTITIONS, _ROWS = 16, 1 << 16


@dataclass(frozen=True)
class ColumnSettings:
    """What all blocks share; it is sent to a worker once."""

    family: Any = None
    dtype: str = "float32"
    memory: int | None = None


class Room(NamedTuple):
    """What a process has for the columns of one more partition."""

    memory: int | None
    folder: Path | None
    n_jobs: int

    @classmethod
    def left(cls, settings: ColumnSettings, held: int, folder: Path | None, n_jobs: int) -> Room:
        """Return what is left where so many bytes of columns are in memory."""
        memory = settings.memory
        left = None if memory is None else max(0, memory // _IN_MEMORY - held)
        return cls(left, folder, n_jobs)


class Block(Protocol):
    """The rows of a partition; travels to the worker that evaluates them."""

    def columns(self, settings: ColumnSettings, room: Room) -> Columns:
        """Return the partition's columns."""
        ...


@dataclass(frozen=True)
class ArrayBlock:
    """Rows of a matrix of features, (m, d)."""

    X: np.ndarray

    def columns(self, settings: ColumnSettings, room: Room) -> Columns:
        """Return the rows as columns in memory."""
        return ArrayColumns(
            self.X, dtype=settings.dtype, n_jobs=room.n_jobs, family=settings.family
        )


@dataclass(frozen=True)
class ImageBlock:
    """Images, (m, H, W[, C])."""

    images: np.ndarray

    def columns(self, settings: ColumnSettings, room: Room) -> Columns:
        """Return the features of the images: evaluated, or in shards where memory has no room."""
        family, images, dtype = settings.family, self.images, settings.dtype
        size = len(images) * family.n_features_ * np.dtype(dtype).itemsize
        if room.memory is None or size <= room.memory:
            return ArrayColumns.from_family(family, images, dtype, room.n_jobs)
        return _in_shards(settings, images, room)


def _in_shards(settings: ColumnSettings, images: np.ndarray, room: Room) -> Columns:
    """Return the columns of images in a store that is removed when they are used no more."""
    from visionshare.store import create_store

    home = tempfile.TemporaryDirectory(prefix="visionshare-columns-", dir=room.folder)
    memory = max(1, (settings.memory or 0) // _OF_STORE)
    columns = create_store(
        Path(home.name, "store"), settings.family, images, settings.dtype, memory, room.n_jobs
    )
    weakref.finalize(columns, home.cleanup)
    return columns


def partition_bounds(m: int, partitions: int | None = None) -> np.ndarray:
    """Return where each of nearly equal partitions of m rows begins, and the end, (n + 1,)."""
    n = max(_PARTITIONS, -(-m // _ROWS)) if partitions is None else partitions
    n = max(1, min(n, m))
    return np.array([-(-i * m // n) for i in range(n + 1)], np.int64)


def bounds_of(sizes: Any) -> np.ndarray:
    """Return where each partition of given sizes begins, and the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])
