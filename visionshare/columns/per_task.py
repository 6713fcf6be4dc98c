"""Columns whose scaling differs between tasks, each of which has examples of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from visionshare.columns.base import Columns, Span, check_ids
from visionshare.errors import InputError
from visionshare.files.fingerprints import array_fingerprint

__all__ = ["TaskScaledColumns"]


class TaskScaledColumns(Columns):
    """Other columns, scaled on the examples of each task alone.

    Parameters
    ----------
    columns : Columns
        Of any kind that is finite and in one place.
    task_of : ndarray of int, shape (m,)
        Task of each example, from 0.
    n_tasks : int

    References
    ----------
    A. Rakotomamonjy, R. Flamary, F. Yger, "Learning with infinitely many features", Machine
    Learning 91, 2013, §2: all columns of Φ^(t) are normalized to unit norm.

    Examples
    --------
    >>> from visionshare.columns import ArrayColumns
    >>> tasks = np.array([0, 0, 1, 1])
    >>> X = TaskScaledColumns(ArrayColumns(np.array([[3.0], [4.0], [2.0], [1.0]])), tasks, 2)
    >>> X.fit_scaling("max_abs")
    >>> X.take().ravel().tolist()
    [0.75, 1.0, 1.0, 0.5]
    """

    def __init__(self, columns: Columns, task_of: np.ndarray, n_tasks: int) -> None:
        if columns.partitioned:
            raise InputError("X", "columns in partitions", "columns in one place")
        super().__init__(columns.shape, columns.dtype, columns.groups, columns.n_jobs)
        self.columns = columns
        self.task_of = np.asarray(task_of)
        self.n_tasks = n_tasks
        self.grows = columns.grows
        self._family = columns.costs
        self._offsets = np.zeros((n_tasks, self.shape[1]))
        self._scales = np.ones((n_tasks, self.shape[1]))

    @property
    def fingerprint(self) -> str:
        """Identity of the scaled columns."""
        tasks = array_fingerprint(self._scales, self._offsets, self.task_of)
        return f"{tasks} {self.columns.fingerprint}"

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the unscaled columns."""
        return self.columns.spans(ids)

    def enter(self, ids: np.ndarray) -> None:
        self.columns.enter(ids)

    def check_rounds(self, rounds: int, entering: int = 1, searches: int = 1) -> None:
        self.columns.check_rounds(rounds, entering, searches)

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> Columns | None:
        inner = old.columns if isinstance(old, TaskScaledColumns) else None
        sampled = self.columns.sample(rows, inner)
        if sampled is None:
            return None
        columns = TaskScaledColumns(sampled, self.task_of[rows], self.n_tasks)
        columns._offsets, columns._scales, columns._scaling = (
            self._offsets, self._scales, self._scaling,
        )  # fmt: skip
        return columns

    def fit_scaling(self, kind: str, omega: np.ndarray | None = None) -> None:
        """Choose offset and scale of every column in each task; see :class:`Columns`.

        A column that is constant in all tasks is left out; where it is in some, it is zero there.
        """
        weights = np.ones(self.shape[0]) if omega is None else np.asarray(omega, np.float64)
        variances = []
        for t in range(self.n_tasks):
            self.columns.fit_scaling(kind, weights * (self.task_of == t))
            self._offsets[t], self._scales[t] = self.columns.scaling_of()
            variances.append(self.columns.variance)
        useful = (self._scales != 0).any(axis=0)
        d = self.shape[1]
        self._scaling = np.zeros(d), np.where(useful, 1.0, 0.0), np.max(variances, axis=0)

    def columns_of(self, ids: np.ndarray | None = None, scaled: bool = True) -> np.ndarray:
        ids = np.arange(self.shape[1]) if ids is None else check_ids(ids, self.shape[1])
        out = self.columns.columns_of(ids, scaled=False)
        if scaled:
            out -= self._offsets[:, ids][self.task_of].T.astype(out.dtype)
            out *= self._scales[:, ids][self.task_of].T.astype(out.dtype)
        return out

    def correlate(self, R: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        """Return XᵀR (n, T), float64, for scaled columns.

        Parameters
        ----------
        R : ndarray of shape (m, T)
            Column t is zero outside the examples of task t.
        ids : ndarray of int, optional
            Which columns; all when omitted.
        """
        if R.ndim != 2 or R.shape[1] != self.n_tasks:
            raise InputError("R", R.shape, f"an array of shape ({self.shape[0]}, {self.n_tasks})")
        ids = np.arange(self.shape[1]) if ids is None else check_ids(ids, self.shape[1])
        G = self.columns.products(np.ascontiguousarray(R), ids)
        G -= self._offsets[:, ids].T * R.sum(axis=0, dtype=np.float64)
        return np.asarray(G * self._scales[:, ids].T)

    def unscaled(
        self, coef: np.ndarray, intercept: np.ndarray, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        weights = coef * self._scales[:, ids]
        return weights, intercept - np.sum(weights * self._offsets[:, ids], axis=1)
