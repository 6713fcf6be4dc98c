"""Shards: HDF5 files written once, a column a chunk with a checksum, then mapped for reading."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.durable import replace_file
from visionshare.errors import StoreError
from visionshare.store.manifest import ShardEntry

__all__ = ["SHARDS", "MappedShard", "shard_problem", "write_shard"]

SHARDS = "shards"


def write_shard(path: Path, columns: np.ndarray, ids: np.ndarray) -> ShardEntry:
    """Write columns (n, m) to a new shard, atomically.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "00000.h5")
    ...     entry = write_shard(path, np.ones((2, 3), np.float32), np.array([4, 7]))
    ...     entry.ids, shard_problem(path, entry, 3, "float32")
    ((4, 7), None)
    """
    import h5py

    with replace_file(path) as partial, h5py.File(partial, "x", locking="best-effort") as file:
        file.create_dataset("columns", data=columns, chunks=(1, columns.shape[1]), fletcher32=True)
        file.create_dataset("ids", data=np.asarray(ids, np.int64))
        file.flush()
    about = path.stat()
    return ShardEntry(tuple(int(j) for j in ids), about.st_size, about.st_mtime_ns)


def shard_problem(path: Path, entry: ShardEntry, m: int, dtype: str) -> str | None:
    """Return what is wrong with a shard, None if every checksum matches.

    Parameters
    ----------
    path : pathlib.Path
    entry : ShardEntry
        What the manifest says of it.
    m, dtype
        Length and kind of its columns.

    Examples
    --------
    >>> shard_problem(Path("nothing.h5"), ShardEntry((0,), 100, 0), 3, "float32") is None
    False
    """
    import h5py

    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            columns, ids = file.get("columns"), file.get("ids")
            if not isinstance(columns, h5py.Dataset) or not isinstance(ids, h5py.Dataset):
                return "no columns"
            if columns.shape != (len(entry.ids), m) or columns.dtype != dtype:
                return f"columns of shape {columns.shape} and {columns.dtype}"
            if columns.chunks != (1, m) or not columns.fletcher32 or columns.compression:
                return "chunks of another kind"
            if ids.shape != (len(entry.ids),) or tuple(ids[()].tolist()) != entry.ids:
                return "columns of other ids"
            column = np.empty((1, m), dtype)
            for j in range(len(entry.ids)):
                columns.read_direct(column, np.s_[j : j + 1])
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return None


class MappedShard:
    """A valid shard, mapped into memory.

    A shard whose size and time are those that the manifest recorded is taken as valid; any other is
    read through once, checksum by checksum, before it is mapped.

    Raises
    ------
    StoreError
        If the shard is broken.
    """

    def __init__(self, path: Path, entry: ShardEntry, m: int, dtype: str) -> None:
        import h5py

        try:
            about = path.stat()
            if (about.st_size, about.st_mtime_ns) != (entry.size, entry.mtime_ns):
                problem = shard_problem(path, entry, m, dtype)
                if problem is not None:
                    raise StoreError(f"{path}: broken ({problem}); run `visionshare store repair`")
            with h5py.File(path, "r", locking="best-effort") as file:
                infos = _chunks(file["columns"].id)
        except (OSError, RuntimeError, KeyError, ValueError, AttributeError) as error:
            raise StoreError(f"{path}: {str(error).splitlines()[0]}") from None
        itemsize = np.dtype(dtype).itemsize
        offsets = np.zeros(len(entry.ids), np.int64)
        for info in infos:
            offsets[info.chunk_offset[0]] = info.byte_offset
        complete = len(infos) == len(offsets) and all(i.size == m * itemsize + 4 for i in infos)
        inside = offsets.max(initial=0) + m * itemsize <= about.st_size
        if not complete or not inside or (offsets % itemsize).any():
            raise StoreError(f"{path}: broken (its chunks); run `visionshare store repair`")
        with open(path, "rb") as handle:
            self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        kind = np.uint16 if dtype == "float16" else np.float32
        self.buffer = np.frombuffer(self._map, kind, about.st_size // itemsize)
        self.offsets = offsets // itemsize

    def release_pages(self) -> None:
        """Give the pages that were read back to the system."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _chunks(dataset: Any) -> list[Any]:
    """Return the offset and size of each chunk of an HDF5 dataset."""
    infos: list[Any] = []
    if hasattr(dataset, "chunk_iter"):
        # One pass of the index; asking for one chunk after the other takes longer than a scan.
        dataset.chunk_iter(infos.append)
        return infos
    return [dataset.get_chunk_info(i) for i in range(dataset.get_num_chunks())]
