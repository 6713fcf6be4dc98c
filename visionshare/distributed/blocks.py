"""Blocks: where the rows of a partition come from, and how they become columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from visionshare.columns import ArrayColumns, Columns

__all__ = ["ArrayBlock", "Block", "ColumnSettings", "ImageBlock", "bounds_of", "partition_bounds"]

# So many partitions, where nobody says another number; more where each would have more rows.
_PARTITIONS, _ROWS = 16, 1 << 16


@dataclass(frozen=True)
class ColumnSettings:
    """What all blocks share; it is sent to a worker once.

    Attributes
    ----------
    family : FeatureFamily, optional
        Fitted; none for blocks that are columns already.
    dtype : {"float32", "float16", "float64"}, default "float32"
    """

    family: Any = None
    dtype: str = "float32"


class Block(Protocol):
    """The rows of a partition; travels to the worker that evaluates them."""

    def columns(self, settings: ColumnSettings, n_jobs: int) -> Columns:
        """Return the partition's columns."""
        ...


@dataclass(frozen=True)
class ArrayBlock:
    """Rows of a matrix of features, (m, d)."""

    X: np.ndarray

    def columns(self, settings: ColumnSettings, n_jobs: int) -> Columns:
        """Return the rows as columns in memory."""
        return ArrayColumns(self.X, dtype=settings.dtype, n_jobs=n_jobs, family=settings.family)


@dataclass(frozen=True)
class ImageBlock:
    """Images, (m, H, W[, C])."""

    images: np.ndarray

    def columns(self, settings: ColumnSettings, n_jobs: int) -> Columns:
        """Return the features of the images, evaluated."""
        return ArrayColumns.from_family(settings.family, self.images, settings.dtype, n_jobs)


def partition_bounds(m: int, partitions: int | None = None) -> np.ndarray:
    """Return where each of nearly equal partitions of m rows begins, and the end, (n + 1,).

    Parameters
    ----------
    m : int
    partitions : int, optional
        16 when omitted, or as many as make no partition longer than 65536 rows.

    Examples
    --------
    >>> partition_bounds(10, 4).tolist()
    [0, 3, 5, 8, 10]
    >>> len(partition_bounds(10_000_000)) - 1
    153
    """
    n = max(_PARTITIONS, -(-m // _ROWS)) if partitions is None else partitions
    n = max(1, min(n, m))
    return np.array([-(-i * m // n) for i in range(n + 1)], np.int64)


def bounds_of(sizes: Any) -> np.ndarray:
    """Return where each partition of given sizes begins, and the end.

    Examples
    --------
    >>> bounds_of([3, 4]).tolist()
    [0, 3, 7]
    """
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])
