"""Columns whose examples lie in partitions: of this process, or of a cluster."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from visionshare.columns import Columns, Span
from visionshare.columns.base import check_ids
from visionshare.distributed.active import PartitionedActive
from visionshare.distributed.blocks import (
    ArrayBlock,
    ColumnSettings,
    PartitionBlock,
    bounds_of,
    partition_bounds,
)
from visionshare.distributed.cluster import ClusterEngine
from visionshare.distributed.engine import Engine, LocalEngine, PartitionedRows
from visionshare.distributed.input_blocks import blocks_of, current_client
from visionshare.distributed.tasks import PartitionedTasks
from visionshare.distributed.warming import warm_workers
from visionshare.distributed.worker_parts import Patience
from visionshare.errors import InputError
from visionshare.machine.resources import parse_size

T = TypeVar("T")


class PartitionedColumns(Columns):
    """Columns in partitions of examples, all in this process.

    Sums over the examples are made in each partition, in float64, and the partitions' sums in an
    order that depends on their number alone: a cluster gives the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> X = PartitionedColumns.from_array(np.array([[1.0], [2.0], [4.0]]), partitions=2)
    >>> X.correlate(np.ones((3, 1))).tolist()
    [[7.0]]
    """

    partitioned = True

    def __init__(self, engine: Engine, d: int, settings: ColumnSettings, n_jobs: int = 1) -> None:
        family = settings.family
        groups = None if family is None else family.groups
        self._engine = engine
        self._family = family
        super().__init__((int(engine.bounds[-1]), d), settings.dtype, groups, n_jobs)

    @classmethod
    def from_family(
        cls,
        family: Any,
        images: Any,
        *,
        partitions: int | None = None,
        dtype: str = "float32",
        memory: str | int | None = None,
        n_jobs: int = 1,
    ) -> PartitionedColumns:
        """Evaluate all features of a fitted family on images.

        Parameters
        ----------
        family : FeatureFamily
            A finite family.
        images : ndarray of shape (m, H, W[, C]), or StoredPictures
            Of stored pictures each file is a partition.
        partitions : int, optional
            Number of partitions of an array; the result depends on it in the last bits. 16 when
            omitted, or as many as make none longer than 65536 rows.
        dtype : {"float32", "float16"}, default "float32"
        memory : str or int, optional
            Bound for columns, half of it for those in memory; partitions that do not fit any more
            are kept in shards on disk, evaluated when they are asked for. All are in memory when
            omitted.
        n_jobs : int, default 1
        """
        blocks, bounds = blocks_of(images, None, partitions, False)
        settings = ColumnSettings(family, dtype, _bytes(memory))
        return cls.from_blocks(blocks, bounds, settings, n_jobs)

    @classmethod
    def from_array(
        cls, X: np.ndarray, *, partitions: int | None = None, n_jobs: int = 1
    ) -> PartitionedColumns:
        """Return the columns of a matrix (m, d)."""
        X = np.asarray(X)
        bounds = partition_bounds(len(X), partitions)
        dtype = "float64" if X.dtype == np.float64 else "float32"
        blocks = [ArrayBlock(part) for part in np.split(X, bounds[1:-1])]
        return cls.from_blocks(blocks, bounds, ColumnSettings(None, dtype), n_jobs)

    @classmethod
    def from_blocks(
        cls,
        blocks: Sequence[PartitionBlock],
        bounds: np.ndarray,
        settings: ColumnSettings,
        n_jobs: int = 1,
    ) -> PartitionedColumns:
        """Return the columns of blocks, a partition each."""
        engine = LocalEngine(blocks, bounds, settings, n_jobs)
        check_shapes(engine.shapes, bounds)
        return cls(engine, engine.shapes[0][1], settings, n_jobs)

    @property
    def n_jobs(self) -> int:
        """Threads in this process; workers of a cluster have their own number."""
        return self._n_jobs

    @n_jobs.setter
    def n_jobs(self, n_jobs: int) -> None:
        self._n_jobs = n_jobs
        if isinstance(self._engine, LocalEngine):
            self._engine.host.n_jobs = n_jobs

    def active_set(
        self,
        make: Callable[..., T],
        y: np.ndarray,
        omega: np.ndarray,
        n_classes: int,
        executor: Any = None,
    ) -> T:
        active = PartitionedActive(self._engine, make, y, omega, n_classes, self.compute_dtype)
        return cast(T, active)

    def task_problem(
        self, make: Callable[..., T], examples: Sequence[np.ndarray], executor: Any = None
    ) -> T:
        return cast(T, PartitionedTasks(self._engine, cast(Any, make), examples))

    def total(self, function: Callable[..., T], *args: Any, how: str = "sum") -> T:
        return cast(T, self._engine.total(function, *args, how=how))

    def each(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._engine.rows(function, *args)

    def of_examples(self, values: Any) -> Any:
        return self._engine.of_examples(values)

    def columns_of(self, ids: np.ndarray | None = None, scaled: bool = True) -> Any:
        """Return what stands for columns (n, m), each partition's rows where they are."""
        ids = None if ids is None else check_ids(ids, self.shape[1])
        shape = (self.shape[1] if ids is None else len(ids), self.shape[0])
        return self._engine.rows(_called, self._engine.data, "columns_of", ids, scaled, shape=shape)

    def take(self, ids: np.ndarray | None = None, scaled: bool = True) -> Any:
        """Return columns (m, n) in one place: for few columns, or to look at them."""
        return self._engine.gathered(_called, self._engine.data, "take", ids, scaled)

    def scores_of(self, ids: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        return self._engine.gathered(
            _called,
            self._engine.data,
            "scores_of",
            check_ids(ids, self.shape[1]),
            coef,
            intercept,
        )

    def correlate(self, R: Any, ids: np.ndarray | None = None) -> np.ndarray:
        ids = None if ids is None else check_ids(ids, self.shape[1])
        if not isinstance(R, PartitionedRows):
            R = np.asarray(R)
            if R.ndim != 2 or len(R) != self.shape[0]:
                raise InputError("R", R.shape, f"an array of shape ({self.shape[0]}, k)")
            R = self._engine.split(R)
        G, sums = self._engine.total(_products, self._engine.data, R, ids)
        offset, scale = self.scaling_of(ids)
        return (G - np.outer(offset, sums)) * scale[:, None]

    def moments(self, omega: np.ndarray) -> np.ndarray:
        part = self._engine.rows(_called, self._engine.data, "moments", self._engine.split(omega))
        sums = self._engine.total(operator.itemgetter(np.s_[:, :2]), part)
        peaks = self._engine.total(operator.itemgetter(np.s_[:, 2]), part, how="max")
        return np.column_stack([sums, peaks])

    def fit_scaling(self, kind: str, omega: np.ndarray | None = None) -> None:
        super().fit_scaling(kind, omega)
        self._share_scaling()

    def adopt_scaling(self, other: Columns) -> None:
        super().adopt_scaling(other)
        self._share_scaling()

    def _share_scaling(self) -> None:
        scaling = (self.offset, self.scale, self.variance)
        self._engine.change(self._engine.data, _called, "set_scaling", *scaling)

    def spans(self, ids: np.ndarray | None) -> Iterator[Span]:
        """Raise an InputError: no buffer holds a column of all examples."""
        raise InputError("columns", "partitions", "columns in one place")


class DistributedColumns(PartitionedColumns):
    """Columns in partitions on the workers of a Dask cluster.

    A learner that is given them learns what it learns from :class:`PartitionedColumns` with the
    same partitions, bit for bit, whatever workers there are and however often one is lost. A
    pickle of them is refused: they live as long as their client.

    Examples
    --------
    >>> from visionshare import ShareBoost
    >>> columns = DistributedColumns.from_family(family, images, client)  # doctest: +SKIP
    >>> ShareBoost(rounds=20).fit(columns, y).support_.shape  # doctest: +SKIP
    (20,)
    """

    @classmethod
    def from_family(  # type: ignore[override]
        cls,
        family: Any,
        images: Any,
        client: Any = None,
        *,
        partitions: int | None = None,
        dtype: str = "float32",
        memory: str | int | None = None,
        waits: Patience | None = None,
    ) -> DistributedColumns:
        """Evaluate all features of a fitted family where the images are.

        Parameters
        ----------
        family : FeatureFamily
            A finite family, fitted; it is sent to each worker once.
        images : ndarray, dask array, sequence of delayed arrays, or StoredPictures
            (m, H, W[, C]), or of each block. Chunks of a dask array are divided along images
            alone, each a partition. Of stored pictures each file is one, see
            :func:`visionshare.datasets.survey_shards`; the worker reads it.
        client : distributed.Client, optional
            The current one when omitted.
        partitions : int, optional
            Of an array in memory, see :meth:`PartitionedColumns.from_family`.
        dtype : {"float32", "float16"}, default "float32"
        memory : str or int, optional
            Bound for columns of each worker, see :meth:`PartitionedColumns.from_family`; shards
            lie in the worker's own folder.
        waits : Patience, optional
            How long a cluster is waited for.
        """
        settings = ColumnSettings(family, dtype, _bytes(memory))
        return cls._on_cluster(images, client, partitions, settings, waits)

    @classmethod
    def from_array(  # type: ignore[override]
        cls,
        X: Any,
        client: Any = None,
        *,
        partitions: int | None = None,
        waits: Patience | None = None,
    ) -> DistributedColumns:
        """Return the columns of a matrix (m, d): an array, a dask array, or delayed blocks."""
        dtype = "float64" if getattr(X, "dtype", None) == np.float64 else "float32"
        return cls._on_cluster(X, client, partitions, ColumnSettings(None, dtype), waits)

    @classmethod
    def _on_cluster(
        cls,
        values: Any,
        client: Any,
        partitions: int | None,
        settings: ColumnSettings,
        waits: Patience | None,
    ) -> DistributedColumns:
        client = current_client(client)
        warm_workers(client)
        blocks, bounds = blocks_of(values, client, partitions, settings.family is None)
        engine = ClusterEngine(client, blocks, bounds, settings, waits)
        check_shapes(engine.shapes, bounds)
        return cls(engine, engine.shapes[0][1], settings)

    @property
    def client(self) -> Any:
        """The client of the cluster."""
        return self.engine.parts.client

    @property
    def engine(self) -> ClusterEngine:
        """Where the partitions are."""
        return cast(ClusterEngine, self._engine)

    @property
    def workers(self) -> dict[str, int]:
        """How many partitions each worker has, by address."""
        places = list(self.engine.parts.place_of.values())
        return {address: places.count(address) for address in sorted(set(places))}

    def close(self) -> None:
        """Free the workers' memory; the columns are used no more."""
        self.engine.close()

    def __enter__(self) -> DistributedColumns:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise InputError("columns", "columns of a cluster", "a learner without them")


def _bytes(memory: str | int | None) -> int | None:
    return None if memory is None else parse_size(memory)


def check_shapes(shapes: Sequence[tuple[int, ...]], bounds: np.ndarray) -> None:
    """Raise an InputError where partitions have other columns, or other rows than was said."""
    widths = sorted({d for _, d in shapes})
    if len(widths) != 1:
        raise InputError("blocks", f"blocks of {widths} columns", "the same columns in each")
    sizes = [m for m, _ in shapes]
    if not np.array_equal(bounds_of(sizes), bounds):
        raise InputError("blocks", f"blocks of {sizes} rows", f"{np.diff(bounds).tolist()} rows")


def _products(
    columns: Columns, R: np.ndarray, ids: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return XᵀR of unscaled columns, and the sums of R's columns."""
    return columns.products(R, ids), R.sum(axis=0, dtype=np.float64)


def _called(columns: Columns, name: str, *args: Any) -> Any:
    return getattr(columns, name)(*args)
