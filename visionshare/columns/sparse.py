"""Columns of a sparse matrix in memory: only what is not zero is kept and read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from visionshare.columns.base import Columns, Span
from visionshare.errors import InputError
from visionshare.machine.resources import thread_limit

# Of columns that are written out with their zeros at a time.
_BATCH_BYTES = 64 << 20


class SparseColumns(Columns):
    """Columns of a scipy sparse matrix or array.

    Products with the pool cost the entries that are not zero; offsets, where the scaling has any,
    are subtracted from the products and never from the entries. Only the columns that a learner
    has chosen are written out with their zeros.

    Parameters
    ----------
    X : scipy sparse matrix or array of shape (m, d)
        Examples by features, of any format; kept by columns, entries of one place added up.
    dtype : {"float32", "float64"}, default "float32"
        How values are kept.
    groups : ndarray of int, shape (d,), optional
        Columns of one number enter a model together.
    n_jobs : int, default 1
        Threads of the scans.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> X = SparseColumns(csr_array(np.array([[1.0, 0.0], [0.0, 5.0]])))
    >>> X.correlate(np.array([[1.0], [2.0]])).ravel().tolist()
    [1.0, 10.0]
    """

    def __init__(
        self,
        X: Any,
        *,
        dtype: str = "float32",
        groups: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        from scipy.sparse import csc_array, issparse

        if dtype not in ("float32", "float64"):
            raise InputError("dtype", dtype, "'float32' or 'float64'")
        if not issparse(X) or X.ndim != 2 or X.dtype.kind not in "fiub":
            raise InputError("X", type(X).__name__, "a sparse matrix (m, d) of numbers")
        # Sorting the entries of a column in place would sort the caller's.
        matrix = csc_array(X, dtype=dtype, copy=True)
        matrix.sum_duplicates()
        super().__init__(matrix.shape, dtype, groups, n_jobs)
        self._matrix = matrix
        self._starts = matrix.indptr.astype(np.int64)

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> SparseColumns:
        picked = SparseColumns(
            self._matrix.tocsr()[rows], dtype=self.dtype, groups=self.groups, n_jobs=self.n_jobs
        )
        picked.adopt_scaling(self)
        return picked

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the columns with their zeros, some at a time."""
        m, d = self.shape
        which = np.arange(d) if ids is None else np.asarray(ids)
        step = max(1, _BATCH_BYTES // max(1, m * self._matrix.data.itemsize))
        for first in range(0, len(which), step):
            part = which[first : first + step]
            buffer = np.ascontiguousarray(self._matrix[:, part].toarray().T).reshape(-1)
            yield Span(buffer, np.arange(len(part)) * m, slice(first, first + len(part)))

    def products(self, R: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
        from visionshare.columns.kernels import correlate_sparse

        which = np.arange(self.shape[1]) if ids is None else ids
        R = np.ascontiguousarray(R, np.float64)
        with thread_limit(self.n_jobs):
            matrix = self._matrix
            return correlate_sparse(self._starts, matrix.indices, matrix.data, which, R)

    def moments(self, omega: np.ndarray) -> np.ndarray:
        from visionshare.columns.kernels import moments_sparse

        omega = np.ascontiguousarray(omega, np.float64)
        with thread_limit(self.n_jobs):
            matrix = self._matrix
            return moments_sparse(self._starts, matrix.indices, matrix.data, omega)

    def scores_of(self, ids: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        return self._matrix[:, ids] @ coef.T + intercept
