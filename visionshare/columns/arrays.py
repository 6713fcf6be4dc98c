"""Columns in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from visionshare.columns.base import Columns, Span
from visionshare.errors import InputError
from visionshare.machine.progress import track
from visionshare.machine.resources import thread_limit

_DTYPES = ("float16", "float32", "float64")
# Of columns that a family evaluates at a time.
_BATCH_BYTES = 64 << 20
_BATCH_IMAGES = 256


class ArrayColumns(Columns):
    """Columns of an array in memory.

    Parameters
    ----------
    X : ndarray of shape (m, d), optional
        Examples by features.
    columns : ndarray of shape (d, m), optional
        The same transposed, kept without a copy where dtype and order fit. Give one of the two.
    dtype : {"float32", "float16", "float64"}, default "float32"
        How values are kept.
    groups : ndarray of int, shape (d,), optional
        Columns of one number enter a model together.
    n_jobs : int, default 1
        Threads of the scans.
    family : FeatureFamily, optional
        Where the columns come from; tells their cost.

    Examples
    --------
    >>> import numpy as np
    >>> X = ArrayColumns(np.array([[1.0, 2.0], [3.0, 5.0]]))
    >>> X.correlate(np.array([[1.0], [1.0]])).ravel().tolist()
    [4.0, 7.0]
    """

    def __init__(
        self,
        X: np.ndarray | None = None,
        *,
        columns: np.ndarray | None = None,
        dtype: str = "float32",
        groups: np.ndarray | None = None,
        n_jobs: int = 1,
        family: Any = None,
    ) -> None:
        if dtype not in _DTYPES:
            raise InputError("dtype", dtype, " or ".join(map(repr, _DTYPES)))
        if (X is None) == (columns is None):
            raise InputError("X", "both or neither", "either X or columns")
        values = np.asarray(columns) if X is None else np.asarray(X).T
        if values.ndim != 2 or values.dtype.kind not in "fiub":
            given = f"{values.dtype} of shape {values.shape}"
            raise InputError("X", given, "a 2-D array of numbers")
        values = np.ascontiguousarray(values, dtype)
        super().__init__((values.shape[1], values.shape[0]), dtype, groups, n_jobs)
        self._family = family
        flat = values.reshape(-1)
        self._buffer = flat.view(np.uint16) if dtype == "float16" else flat

    @classmethod
    def from_family(
        cls,
        family: Any,
        images: np.ndarray,
        dtype: str = "float32",
        n_jobs: int = 1,
    ) -> ArrayColumns:
        """Evaluate all features of a fitted family on images."""
        values = np.empty((family.n_features_, len(images)), dtype)
        step = max(1, _BATCH_BYTES // max(1, values.itemsize * family.n_features_))
        # Some dozen batches of many images: it is seen how far it is.
        step = min(step, max(_BATCH_IMAGES, -(-len(images) // 50)))
        for i in track(range(0, len(images), step), "columns"):
            batch = images[i : i + step]
            values[:, i : i + step] = family.transform_columns(batch, n_jobs=n_jobs, dtype=dtype)
        return cls(columns=values, dtype=dtype, groups=family.groups, n_jobs=n_jobs, family=family)

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> ArrayColumns:
        return sampled(self, rows, old)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield one span: everything lies in one buffer."""
        m, d = self.shape
        which = np.arange(d) if ids is None else ids
        yield Span(self._buffer, which.astype(np.int64) * m, slice(0, len(which)))

    def table(self) -> np.ndarray | None:
        """Return all columns, unscaled, (d, m), without a copy; None for float16."""
        if self.dtype == "float16":
            return None
        return self._buffer.reshape(self.shape[1], self.shape[0])


def sampled(columns: Columns, rows: np.ndarray, old: Columns | None = None) -> ArrayColumns:
    """Return all columns of some examples, copied to memory, with their scaling."""
    from visionshare.columns.kernels import pick

    d = columns.shape[1]
    half = columns.dtype == "float16"
    out = _allocate(old, d * len(rows), np.dtype(np.uint16 if half else columns.dtype))
    out = out.reshape(d, len(rows))
    rows = np.ascontiguousarray(rows, np.int64)
    with thread_limit(columns.n_jobs):
        for span in columns.spans(None):
            targets = span.positions
            if isinstance(targets, slice):
                targets = np.arange(d)[targets]
            pick(span.buffer, span.offsets, rows, targets.astype(np.int64), out)
    values = out.view(np.float16) if half else out
    copied = ArrayColumns(
        columns=values, dtype=columns.dtype, groups=columns.groups, n_jobs=columns.n_jobs
    )
    copied.adopt_scaling(columns)
    return copied


def _allocate(old: Columns | None, size: int, dtype: np.dtype) -> np.ndarray:
    """Return an array of so many values, in an earlier sample's memory where there is enough."""
    # Fresh memory costs more than what is copied to it: the system clears it page by page.
    memory = old._buffer.base if isinstance(old, ArrayColumns) else None
    while isinstance(memory, np.ndarray) and isinstance(memory.base, np.ndarray):
        memory = memory.base
    if isinstance(memory, np.ndarray) and memory.dtype == dtype and memory.size >= size:
        return memory.reshape(-1)[:size]
    # Samples differ in size by chance: room for the next one.
    return np.empty(size + size // 8, dtype)[:size]
