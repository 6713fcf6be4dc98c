"""Shards: HDF5 files written once, one chunk with a checksum per column, then mapped for reading.

A shard is composed in memory and written as plain bytes: where the disk is full, HDF5 has no open
file that it cannot close. Its digest stands in the manifest and is checked, once per process,
before anything reads a byte of it.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import StoreError
from visionshare.files.durable import write_bytes
from visionshare.files.fingerprints import content_digest, file_digest
from visionshare.store.manifest import ShardEntry

__all__ = ["SHARDS", "MappedShard", "digested", "shard_problem", "write_shard"]

SHARDS = "shards"


def write_shard(path: Path, columns: np.ndarray, ids: np.ndarray) -> ShardEntry:
    """Write columns (n, m) to a new shard, atomically; return what the manifest says of it."""
    content, offsets = _composed(columns, ids)
    write_bytes(path, content)
    own_ids = tuple(int(j) for j in ids)
    return ShardEntry(own_ids, len(content), content_digest(content), offsets)


def _composed(columns: np.ndarray, ids: np.ndarray) -> tuple[bytes, tuple[int, ...]]:
    """Return the bytes of an HDF5 file of columns, and where each column begins in it."""
    import h5py

    with h5py.File("shard", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset(
            "columns", data=columns, chunks=(1, columns.shape[1]), fletcher32=True
        )
        file.create_dataset("ids", data=np.asarray(ids, np.int64))
        file.flush()
        offsets = [0] * len(columns)
        for chunk in _chunks(dataset.id):
            offsets[chunk.chunk_offset[0]] = chunk.byte_offset
        return file.id.get_file_image(), tuple(offsets)


def digested(path: Path, entry: ShardEntry, m: int, dtype: str) -> ShardEntry:
    """Return the entry of a shard of version 1 with its digest; the shard was found valid."""
    if entry.blake3 is not None:
        return entry
    offsets = tuple(int(start) for start in _offsets(path, entry, m, dtype))
    return ShardEntry(entry.ids, path.stat().st_size, file_digest(path), offsets)


def shard_problem(path: Path, entry: ShardEntry, m: int, dtype: str) -> str | None:
    """Return what is wrong with a shard, None where its digest or every checksum holds."""
    if entry.blake3 is None:
        return _hdf5_problem(path, entry, m, dtype)
    try:
        if path.stat().st_size != entry.size or file_digest(path) != entry.blake3:
            return "damaged: its digest is not the one that the manifest recorded"
    except OSError as error:
        return error.strerror or "cannot be read"
    itemsize = np.dtype(dtype).itemsize
    if any(start % itemsize or start + m * itemsize > entry.size for start in entry.offsets):
        return "columns outside of the file"
    return None


def _hdf5_problem(path: Path, entry: ShardEntry, m: int, dtype: str) -> str | None:
    """Return what is wrong with a shard of version 1, None where every checksum holds."""
    import h5py

    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            columns = file.get("columns")
            ids = file.get("ids")
            if not isinstance(columns, h5py.Dataset) or not isinstance(ids, h5py.Dataset):
                return "no columns"
            if columns.shape != (len(entry.ids), m) or columns.dtype != dtype:
                return f"columns of shape {columns.shape} and {columns.dtype}"
            if columns.chunks != (1, m) or not columns.fletcher32 or columns.compression:
                return "chunks of another kind"
            if ids.shape != (len(entry.ids),) or tuple(ids[()].tolist()) != entry.ids:
                return "columns of other ids"
            # HDF5 trusts these sizes, and dies of wrong ones.
            offsets = _chunk_offsets(columns, path.stat().st_size)
            if offsets is None:
                return "chunks of other sizes"
            return _column_problem(path, columns, offsets)
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__


def _column_problem(path: Path, columns: Any, offsets: np.ndarray) -> str | None:
    """Read columns through HDF5, which checks their sums; compare with what lies in the file."""
    # A chunk that HDF5 does not find is all zeros for it, without an error.
    column = np.empty((1, columns.shape[1]), columns.dtype)
    with open(path, "rb") as handle:
        for j, offset in enumerate(offsets.tolist()):
            columns.read_direct(column, np.s_[j : j + 1])
            handle.seek(offset)
            if handle.read(column.nbytes) != column.tobytes():
                return f"the chunk of column {j}"
    return None


class MappedShard:
    """A valid shard, mapped into memory; it is read through once and compared with its digest."""

    def __init__(self, path: Path, entry: ShardEntry, m: int, dtype: str) -> None:
        problem = shard_problem(path, entry, m, dtype)
        if problem is not None:
            raise StoreError(_broken(path, problem))
        offsets = np.array(entry.offsets, np.int64)
        if entry.blake3 is None:
            offsets = _offsets(path, entry, m, dtype)
        with open(path, "rb") as handle:
            self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        itemsize = np.dtype(dtype).itemsize
        kind = np.uint16 if dtype == "float16" else np.float32
        self.buffer = np.frombuffer(self._map, kind, len(self._map) // itemsize)
        self.offsets = offsets // itemsize

    def release_pages(self) -> None:
        """Let the system take the pages back that were read."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _offsets(path: Path, entry: ShardEntry, m: int, dtype: str) -> np.ndarray:
    """Return where each column of a shard of version 1 begins, in bytes."""
    import h5py

    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            offsets = _chunk_offsets(file["columns"], path.stat().st_size)
    except (OSError, RuntimeError, KeyError, ValueError, AttributeError) as error:
        raise StoreError(f"{path}: {str(error).splitlines()[0]}") from None
    if offsets is None or (offsets % np.dtype(dtype).itemsize).any():
        raise StoreError(_broken(path, "its chunks"))
    return offsets


def _broken(path: Path, problem: str) -> str:
    return f"{path}: broken ({problem}); run `visionshare store repair`"


def _chunk_offsets(columns: Any, size: int) -> np.ndarray | None:
    """Return where the chunk of each column begins in a file of this size; None if any is wrong."""
    n, m = columns.shape
    n_bytes = m * columns.dtype.itemsize + 4
    chunks = _chunks(columns.id)
    if sorted(chunk.chunk_offset for chunk in chunks) != [(j, 0) for j in range(n)]:
        return None
    if any(c.size != n_bytes or c.filter_mask or c.byte_offset + n_bytes > size for c in chunks):
        return None
    offsets = np.zeros(n, np.int64)
    for chunk in chunks:
        offsets[chunk.chunk_offset[0]] = chunk.byte_offset
    return offsets if len(np.unique(offsets)) == n else None


def _chunks(dataset: Any) -> list[Any]:
    """Return the offset and size of each chunk of an HDF5 dataset."""
    infos: list[Any] = []
    if hasattr(dataset, "chunk_iter"):
        # One pass of the index; asking for one chunk after the other takes longer than a scan.
        dataset.chunk_iter(infos.append)
        return infos
    return [dataset.get_chunk_info(i) for i in range(dataset.get_num_chunks())]
