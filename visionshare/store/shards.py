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


def shard_problem(path: Path, entry: ShardEntry, m: int, dtype: str) -> str | None:
    """Return what is wrong with a shard, None where its digest holds."""
    try:
        if path.stat().st_size != entry.size or file_digest(path) != entry.blake3:
            return "damaged: its digest is not the one that the manifest recorded"
    except OSError as error:
        return error.strerror or "cannot be read"
    itemsize = np.dtype(dtype).itemsize
    if any(start % itemsize or start + m * itemsize > entry.size for start in entry.offsets):
        return "columns outside of the file"
    return None


class MappedShard:
    """A valid shard, mapped into memory; it is read through once and compared with its digest."""

    def __init__(self, path: Path, entry: ShardEntry, m: int, dtype: str) -> None:
        problem = shard_problem(path, entry, m, dtype)
        if problem is not None:
            raise StoreError(f"{path}: broken ({problem}); run `visionshare store repair`")
        with open(path, "rb") as handle:
            self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        itemsize = np.dtype(dtype).itemsize
        kind = np.uint16 if dtype == "float16" else np.float32
        self.buffer = np.frombuffer(self._map, kind, len(self._map) // itemsize)
        self.offsets = np.array(entry.offsets, np.int64) // itemsize

    def release_pages(self) -> None:
        """Let the system take the pages back that were read."""
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
