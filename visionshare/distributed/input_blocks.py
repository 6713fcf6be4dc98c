"""What a caller gives as images or features, as blocks: arrays, dask arrays, delayed blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.columns import Columns
from visionshare.datasets.shards import Reading, Shard, StoredPictures
from visionshare.distributed.blocks import (
    ArrayBlock,
    ImageBlock,
    PartitionBlock,
    bounds_of,
    partition_bounds,
)
from visionshare.errors import InputError


@dataclass(frozen=True)
class DelayedBlock:
    """A block that the worker computes by itself whenever it is placed there."""

    delayed: Any
    is_table: bool

    def load(self, host: Any) -> Columns:
        """Compute the array and return its columns."""
        import dask

        (values,) = dask.compute(self.delayed, scheduler="synchronous")
        block = ArrayBlock(values) if self.is_table else ImageBlock(values)
        return block.load(host)


@dataclass(frozen=True)
class StoredBlock:
    """A file of pictures that the worker reads by itself, wherever it is stored."""

    shard: Shard
    reading: Reading

    def load(self, host: Any) -> Columns:
        """Read the file and return the features of its images."""
        images = self.shard.images(self.reading, host.folder, host.n_jobs)
        return ImageBlock(images).load(host)


def current_client(client: Any) -> Any:
    """Return a client, or the current one for None."""
    try:
        from distributed import Client, get_client
    except ImportError:
        accepted = "Dask, which `pip install visionshare[dask]` installs"
        raise InputError("client", client, accepted) from None
    if client is None:
        try:
            return get_client()
        except ValueError:
            raise InputError("client", None, "a distributed.Client") from None
    if not isinstance(client, Client) or client.asynchronous:
        raise InputError("client", type(client).__name__, "a synchronous distributed.Client")
    return client


def blocks_of(
    values: Any, client: Any, partitions: int | None, is_table: bool
) -> tuple[Sequence[PartitionBlock], np.ndarray]:
    """Return a block for each partition, and where each begins among all rows, and the end."""
    if isinstance(values, StoredPictures):
        if partitions is not None or is_table:
            raise InputError("images", "stored pictures", "no partitions: each file is one")
        blocks = [StoredBlock(shard, values.reading) for shard in values.shards]
        return blocks, bounds_of([len(shard.labels) for shard in values.shards])
    if hasattr(values, "to_delayed") and hasattr(values, "chunks"):
        if partitions is not None:
            raise InputError("partitions", partitions, "none for a dask array: each chunk is one")
        together = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
        delayed = [
            block.item() for block in together.to_delayed().reshape(len(together.chunks[0]), -1)
        ]
        sizes = together.chunks[0]
    elif isinstance(values, (list, tuple)) and values and hasattr(values[0], "__dask_graph__"):
        delayed = list(values)
        sizes = (np.nan,)
    else:
        table = np.asarray(values)
        bounds = partition_bounds(len(table), partitions)
        kind = ArrayBlock if is_table else ImageBlock
        return [kind(part) for part in np.split(table, bounds[1:-1])], bounds
    if np.isnan(np.sum(sizes)):
        from dask import delayed as later

        sizes = client.gather(client.compute([later(len)(block) for block in delayed]))
    return [DelayedBlock(block, is_table) for block in delayed], bounds_of(sizes)
