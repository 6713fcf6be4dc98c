"""Columns: a matrix that is only ever asked for columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from visionshare.columns.scaling import chosen_scaling, column_moments, example_weights
from visionshare.errors import InputError
from visionshare.files.fingerprints import array_fingerprint
from visionshare.machine.resources import thread_limit

T = TypeVar("T")


@dataclass(frozen=True)
class Span:
    """Columns that lie in one buffer.

    Attributes
    ----------
    buffer : ndarray of one dimension
        float64, float32, or the bits of float16 as uint16.
    offsets : ndarray of int64, shape (n,)
        Where each column begins.
    positions : ndarray of int64, shape (n,), or slice
        Which of the columns that were asked for these are.

    Examples
    --------
    >>> columns = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> span = Span(columns.reshape(-1), np.array([2, 0]), slice(0, 2))
    >>> span.buffer[span.offsets].tolist()
    [3.0, 1.0]
    """

    buffer: np.ndarray
    offsets: np.ndarray
    positions: np.ndarray | slice


def check_ids(ids: np.ndarray, d: int, argument: str = "ids") -> np.ndarray:
    """Return ids of columns or of features as int64."""
    ids = np.asarray(ids)
    if ids.size == 0:
        return ids.astype(np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise InputError(argument, f"{ids.dtype} of shape {ids.shape}", "a vector of ids")
    if ids.min() < 0 or ids.max() >= d:
        outside = ids.min() if ids.min() < 0 else ids.max()
        raise InputError(argument, int(outside), f"ids from 0 to {d - 1}")
    return ids.astype(np.int64)


class Totals:
    """What columns whose examples are in one place do with a function of these.

    Examples
    --------
    >>> y = Totals().of_examples(np.array([1.0, 2.0]))
    >>> float(Totals().total(np.sum, y))
    3.0
    """

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        """Return the sum of what a function gives for all examples.

        Columns whose examples lie in several places call it in each of them, with what stands there
        for these arguments. Whatever needs the examples themselves is written so: they need not
        come together.

        Parameters
        ----------
        function : callable
            Of the arguments; returns numbers, an array, or a tuple of such.
        *args
            Arrays with a row for each example as :meth:`of_examples` returns them, chosen columns,
            what :meth:`each` returned, and anything else, which is equal everywhere.
        how : {"sum", "max"}, default "sum"
        """
        return function(*args)

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function gives for each example; it stays where the examples are."""
        return function(*args)

    def of_examples(self, values: np.ndarray) -> Any:
        """Return an array with a row for each example as :meth:`total` and :meth:`each` take it."""
        return values

    def task_problem(
        self, make: Callable[..., T], examples: Sequence[np.ndarray], executor: Any = None
    ) -> T:
        """Return the problem of tasks that is made of what is known of the examples."""
        return make(executor, *examples)


class Columns(Totals, ABC):
    """A matrix (m, d) of feature columns with a scaling each, in memory or in a store.

    Attributes
    ----------
    shape : tuple of int
        Examples and columns, (m, d).
    dtype : {"float16", "float32", "float64"}
        How values are kept.
    groups : ndarray of int64, shape (d,), or None
        Columns of one number enter a model together; None: each enters alone.
    n_jobs : int
        Threads of the scans; no result depends on it.
    partitioned : bool
        Whether the examples lie in several places: only sums over them then meet in one, and
        :meth:`columns_of` returns what stands for the columns.
    grows : bool
        Whether an id means something only after what entered before: ids of one fit are no ids of
        another.

    Examples
    --------
    >>> from visionshare.columns import ArrayColumns
    >>> columns: Columns = ArrayColumns(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> columns.fit_scaling("unit_variance")
    >>> columns.take().tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    shape: tuple[int, int]
    dtype: str
    groups: np.ndarray | None
    n_jobs: int
    partitioned: ClassVar[bool] = False
    grows: bool = False
    # The family of the columns, or something that costs what a family does; None for none.
    _family: Any = None

    def __init__(
        self, shape: tuple[int, int], dtype: str, groups: np.ndarray | None, n_jobs: int
    ) -> None:
        if groups is not None:
            groups = np.asarray(groups)
            if groups.shape != (shape[1],) or not np.issubdtype(groups.dtype, np.integer):
                accepted = f"an integer for each of {shape[1]} columns"
                raise InputError("groups", groups.shape, accepted)
            groups = groups.astype(np.int64)
        self.shape = shape
        self.dtype = dtype
        self.groups = groups
        self.n_jobs = n_jobs
        # Offset, scale and variance of every column, once they are chosen.
        self._scaling: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @property
    def compute_dtype(self) -> np.dtype:
        """float64 where values are kept so, else float32."""
        return np.dtype(np.float64 if self.dtype == "float64" else np.float32)

    @property
    def offset(self) -> np.ndarray:
        """Offsets (d,), float64: a scaled column is (x − offset) · scale."""
        return self.scaling_of()[0]

    @property
    def scale(self) -> np.ndarray:
        """Scales (d,), float64; 0 for a column that is constant, once :meth:`fit_scaling` ran."""
        return self.scaling_of()[1]

    @property
    def variance(self) -> np.ndarray:
        """Variances (d,) of the scaled columns, float64; NaN before :meth:`fit_scaling`."""
        return np.full(self.shape[1], np.nan) if self._scaling is None else self._scaling[2]

    def scaling_of(self, ids: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return offsets and scales (n,), float64, of columns; of all when omitted."""
        if self._scaling is None:
            n = self.shape[1] if ids is None else len(ids)
            return np.zeros(n), np.ones(n)
        offset, scale, _ = self._scaling
        return (offset, scale) if ids is None else (offset[ids], scale[ids])

    def flat(self) -> np.ndarray:
        """Return which columns are constant, (d,) bool: scaled, they are zero."""
        return self.scale == 0

    @property
    def fingerprint(self) -> str:
        """Identity of the scaled columns: another value gives other sums with random weights."""
        probe = np.random.default_rng(0).random(self.shape[0])
        return array_fingerprint(self.scale, self.offset, self.moments(probe))

    @abstractmethod
    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Yield the columns ``ids`` (all for None), each in exactly one span."""

    def active_set(
        self,
        make: Callable[..., T],
        y: np.ndarray,
        omega: np.ndarray,
        n_classes: int,
        executor: Any = None,
    ) -> T:
        """Return an empty active set for chosen columns, where their examples are."""
        return make(y, omega, n_classes, 16, self.compute_dtype, executor)

    def macs(self, ids: np.ndarray) -> int | None:
        """Return the multiply-accumulates per image of these features, None where unknown."""
        return None if self._family is None else int(self._family.macs(ids))

    def moved(self, candidates: np.ndarray) -> np.ndarray:
        """Return the parameters (n, p) of drawn candidates, empty where none was moved."""
        return np.empty(0)

    def put(self, candidates: np.ndarray, moved: np.ndarray) -> None:
        """Move drawn candidates to parameters (n, p), as :meth:`moved` returned them."""
        raise InputError("X", type(self).__name__, "columns of draws")

    @property
    def moved_draws(self) -> dict[int, np.ndarray]:
        """Parameters of the draws that were moved since the scaling was chosen, by number."""
        return {}

    def moved_to(self, moved: Mapping[int, np.ndarray]) -> Columns:
        """Return the same columns, of which only these draws are moved."""
        raise InputError("X", type(self).__name__, "columns of draws")

    def enter(self, ids: np.ndarray) -> None:
        """Note that a learner has chosen columns, in order of entry."""
        return

    def check_rounds(self, rounds: int, entering: int = 1, searches: int = 1) -> None:
        """Raise an InputError if there is no room for so many rounds."""
        return

    def added_macs(
        self, chosen: np.ndarray, ids: np.ndarray | None = None, starts: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return what columns, or groups of them, add to the multiply-accumulates of chosen ones.

        Groups begin at ``starts`` among ``ids``. None where the cost is unknown.
        """
        return None if self._family is None else self._family.added_macs(chosen, ids, starts)

    def added_bytes(
        self, chosen: np.ndarray, ids: np.ndarray | None = None, starts: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return what columns, or groups of them, add to the bytes that a classifier holds."""
        return None if self._family is None else self._family.added_bytes(chosen, ids, starts)

    @property
    def costs(self) -> Any:
        """What says the costs of the columns: their family, or what costs as it; None for none."""
        return self._family

    def sample(self, rows: np.ndarray, old: Columns | None = None) -> Columns | None:
        """Return all columns of some examples, copied, with the scaling of these columns.

        None where columns are computed when they are asked for: a copy gains nothing. The memory
        of ``old``, an earlier sample that is used no more, is written over.
        """
        return None

    def scores_of(self, ids: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return scores (m, T) of weights (T, n) of unscaled columns, and of intercepts (T,)."""
        return self.columns_of(ids, scaled=False).T @ coef.T + intercept

    def unscaled(
        self, coef: np.ndarray, intercept: np.ndarray, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (T, n) and intercepts (T,) of unscaled columns."""
        offset, scale = self.scaling_of(ids)
        weights = coef * scale
        return weights, intercept - weights @ offset

    def table(self) -> np.ndarray | None:
        """Return all columns, unscaled, (d, m), without a copy; None where there is none."""
        return None

    def columns_of(self, ids: np.ndarray | None = None, scaled: bool = True) -> np.ndarray:
        """Return columns as the rows of an array (n, m), float32 (float64 where kept so)."""
        from visionshare.columns.kernels import gather

        ids = None if ids is None else check_ids(ids, self.shape[1])
        n = self.shape[1] if ids is None else len(ids)
        out = np.empty((n, self.shape[0]), self.compute_dtype)
        with thread_limit(self.n_jobs):
            for span in self.spans(ids):
                if isinstance(span.positions, slice):
                    gather(span.buffer, span.offsets, out[span.positions])
                else:
                    part = np.empty((len(span.offsets), self.shape[0]), out.dtype)
                    gather(span.buffer, span.offsets, part)
                    out[span.positions] = part
        if scaled:
            offset, scale = self.scaling_of(ids)
            out -= offset[:, None].astype(out.dtype)
            out *= scale[:, None].astype(out.dtype)
        return out

    def take(self, ids: np.ndarray | None = None, scaled: bool = True) -> np.ndarray:
        """Return columns as an array (m, n), each column contiguous."""
        return self.columns_of(ids, scaled).T

    def correlate(self, R: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        """Return XᵀR (n, k), float64, for scaled columns."""
        ids = None if ids is None else check_ids(ids, self.shape[1])
        R = np.asarray(R)
        if R.ndim != 2 or len(R) != self.shape[0]:
            raise InputError("R", R.shape, f"an array of shape ({self.shape[0]}, k)")
        G = self.products(R, ids)
        offset, scale = self.scaling_of(ids)
        G -= np.outer(offset, R.sum(axis=0, dtype=np.float64))
        G *= scale[:, None]
        return G

    def products(self, R: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
        """Return XᵀR (n, k), float64, for unscaled columns."""
        from visionshare.columns.kernels import correlate

        G = np.empty((self.shape[1] if ids is None else len(ids), R.shape[1]))
        with thread_limit(self.n_jobs):
            for span in self.spans(ids):
                G[span.positions] = correlate(span.buffer, span.offsets, R)
        return G

    def adopt_scaling(self, other: Columns) -> None:
        """Take the scaling of other columns."""
        self.set_scaling(other.offset, other.scale, other.variance)

    def set_scaling(self, offset: np.ndarray, scale: np.ndarray, variance: np.ndarray) -> None:
        """Take offset, scale and variance (d,) of each column."""
        self._scaling = offset, scale, variance

    def fit_scaling(self, kind: str, omega: np.ndarray | None = None) -> None:
        """Choose offset and scale of every column.

        Parameters
        ----------
        kind : {"none", "unit_variance", "unit_norm", "max_abs"}
            "unit_variance": mean 0 and variance 1; "unit_norm": Σ ω x² = 1, the offset 0;
            "max_abs": into [−1, 1], the offset 0.
            A column that is constant, or holds NaN, gets scale 0: scaled, it is zero.
        omega : ndarray of shape (m,), optional
            Weights of the examples, at least 0; equal when omitted.
        """
        omega, total = example_weights(kind, omega, self.shape[0])

        def column(j: int) -> np.ndarray:
            return self.columns_of(np.array([j]), scaled=False)[0]

        sums = self.moments(omega)
        whole = None if self.partitioned else column
        moments = column_moments(sums, self.dtype, omega, whole)
        self._scaling = chosen_scaling(kind, moments, total)

    def moments(self, omega: np.ndarray) -> np.ndarray:
        """Return Σ ω x, Σ ω x² and max |x| over ω > 0 of each unscaled column, (d, 3)."""
        from visionshare.columns.kernels import moments

        result = np.empty((self.shape[1], 3))
        with thread_limit(self.n_jobs):
            for span in self.spans(None):
                result[span.positions] = moments(span.buffer, span.offsets, omega)
        return result
