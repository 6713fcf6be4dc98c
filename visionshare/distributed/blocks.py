"""Blocks: where the rows of a partition come from, and how they become columns."""

from __future__ import annotations

import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from visionshare.columns import ArrayColumns, Columns

# Of a process's bound: what a partition on disk may hold in memory.
_OF_STORE = 8
# So many partitions, where nobody says another number; more where each would have more rows.
_PARTITIONS = 16
_ROWS = 1 << 16


@dataclass(frozen=True)
class ColumnSettings:
    """What all blocks share; it is sent to a worker once."""

    family: Any = None
    dtype: str = "float32"
    memory: int | None = None


class PartitionBlock(Protocol):
    """The rows of a partition; travels to the process that uses them."""

    def load(self, host: Any) -> Any:
        """Return the partition's data, for a :class:`visionshare.distributed.host.Host`."""
        ...


@dataclass(frozen=True)
class ArrayBlock:
    """Rows of a matrix of features, (m, d)."""

    X: np.ndarray

    def load(self, host: Any) -> Columns:
        """Return the rows as columns in memory."""
        settings = host.settings
        return ArrayColumns(
            self.X, dtype=settings.dtype, n_jobs=host.n_jobs, family=settings.family
        )


@dataclass(frozen=True)
class ImageBlock:
    """Images, (m, H, W[, C])."""

    images: np.ndarray

    def load(self, host: Any) -> Columns:
        """Return the features of the images: evaluated, or in shards where memory has no room."""
        family = host.settings.family
        dtype = host.settings.dtype
        size = len(self.images) * family.n_features_ * np.dtype(dtype).itemsize
        left = host.memory_left()
        if left is None or size <= left:
            return ArrayColumns.from_family(family, self.images, dtype, host.n_jobs)
        return self._in_shards(host)

    def _in_shards(self, host: Any) -> Columns:
        """Return columns in a store that is removed when they are used no more."""
        from visionshare.store import create_store

        settings = host.settings
        home = tempfile.TemporaryDirectory(prefix="visionshare-columns-", dir=host.folder)
        memory = max(1, (settings.memory or 0) // _OF_STORE)
        columns = create_store(
            Path(home.name, "store"), settings.family, self.images, settings.dtype, memory,
            host.n_jobs,
        )  # fmt: skip
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
