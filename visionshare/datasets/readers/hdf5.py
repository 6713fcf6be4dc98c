"""Arrays of HDF5 files of strangers, read within bounds.

The HDF5 library follows what a file says: a damaged heap of texts keeps it busy without end, and a
packed chunk may become any number of bytes. So texts of variable length are taken from the heap
here, and chunks are unpacked here; the library finds them, and reads what is in one piece.
"""

from __future__ import annotations

import itertools
import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from visionshare.datasets.readers.bounds import unpacked_limit
from visionshare.errors import DataError

__all__ = ["Hdf5Array", "hdf5_array"]

_MAX_BYTES = 8 << 30
# Of one text.
_MAX_TEXT = 1 << 16
# A reference to a text: its length, the heap that it is in, and its number there.
_REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])
# Of a heap, and of an object in it: number, count of references, size.
_HEAP, _OBJECT = struct.Struct("<4sB3xQ"), struct.Struct("<HH4xQ")
# Filters of chunks, and the bytes of a checksum.
_GZIP, _SHUFFLE, _CHECKSUM, _SUM = 1, 2, 3, 4
# Chunks that every file may have, and bytes of a file for each further one.
_FREE_CHUNKS, _BYTES_PER_CHUNK = 10_000, 100


def hdf5_array(file: Any, handle: IO[bytes], name: str, where: str) -> Hdf5Array:
    """Return an array of an open HDF5 file whose values are in this file; none is read."""
    import h5py

    links = file.id.links
    # Nothing is opened to see of what kind a link is.
    if links.exists(name.encode()) and links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
        raise DataError(f"{where}: {name} is a link, which may lead to another file")
    node = file.get(name)
    if not isinstance(node, h5py.Dataset):
        raise DataError(f"{where}: no array {name!r}; it has {sorted(file)[:10]}")
    if node.is_virtual or node.external:
        raise DataError(f"{where}: the values of {name} are in other files")
    text = h5py.check_string_dtype(node.dtype)
    is_text = text is not None and text.length is None
    if node.shape is None or (node.dtype.kind not in "fiubS" and not is_text):
        raise DataError(f"{where}: {name} is of {node.dtype}: no numbers or text")
    return Hdf5Array(node, handle, f"{where}: {name}", is_text)


class Hdf5Array:
    """An array whose rows are read when they are asked for, see :func:`hdf5_array`."""

    def __init__(self, node: Any, handle: IO[bytes], where: str, is_text: bool) -> None:
        self._node, self._handle, self._where = node, handle, where
        self._is_text, self._plan = is_text, node.id.get_create_plist()
        self.shape: tuple[int, ...] = node.shape
        self.dtype: np.dtype[Any] = node.dtype
        self.chunks: tuple[int, ...] | None = node.chunks
        self._stored: np.dtype[Any] = _REFERENCE if is_text else node.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return some rows; all with ``[:]``."""
        if not self.shape:
            raise DataError(f"{self._where}: a single value, no array")
        start, stop, _ = rows.indices(self.shape[0])
        shape = (max(0, stop - start), *self.shape[1:])
        file_size = self._handle.seek(0, os.SEEK_END)
        most = unpacked_limit(file_size, _MAX_BYTES)
        if (n_bytes := _n_bytes(shape, self._stored)) > most:
            raise DataError(f"{self._where}: {n_bytes} bytes, at most {most} are accepted")
        if self.chunks is not None:
            stored = self._from_chunks(start, stop, file_size)
        else:
            stored = self._from_one_piece(start, stop, file_size)
        return self._texts(stored, file_size) if self._is_text else stored

    def _from_one_piece(self, start: int, stop: int, file_size: int) -> np.ndarray:
        """Return rows of an array that is not in chunks."""
        offset = self._node.id.get_offset()
        if offset is not None and offset + _n_bytes(self.shape, self._stored) > file_size:
            raise DataError(f"{self._where}: values beyond the end of the file")
        if not self._is_text:
            return np.asarray(self._node[start:stop])
        if offset is None:
            raise DataError(f"{self._where}: texts that are not in the file")
        shape = (stop - start, *self.shape[1:])
        self._handle.seek(offset + start * _n_bytes(self.shape[1:], self._stored))
        content = self._handle.read(_n_bytes(shape, self._stored))
        return np.frombuffer(content, self._stored).reshape(shape)

    def _from_chunks(self, start: int, stop: int, file_size: int) -> np.ndarray:
        """Return rows of an array in chunks."""
        assert self.chunks is not None
        # 1) which chunks have a part of the rows
        ends = (stop, *self.shape[1:])
        firsts = (start // self.chunks[0], *(0 for _ in self.shape[1:]))
        places = [
            range(first * step, end, step)
            for first, end, step in zip(firsts, ends, self.chunks, strict=True)
        ]
        if math.prod(map(len, places)) > _FREE_CHUNKS + file_size // _BYTES_PER_CHUNK:
            raise DataError(f"{self._where}: too many chunks; write larger ones")
        # 2) what is not packed
        if not self._is_text and not self._plan.get_nfilters():
            return np.asarray(self._node[start:stop])
        # 3) each of them, without what is before the rows or beyond the array
        self._check_type()
        values = np.zeros((stop - start, *self.shape[1:]), self._stored)
        for place in itertools.product(*places):
            before = max(start - place[0], 0)
            inside = (slice(0, end - low) for end, low in zip(ends, place, strict=True))
            part = self._chunk(place)[tuple(inside)][before:]
            lows = (place[0] + before - start, *place[1:])
            values[tuple(map(slice, lows, np.add(lows, part.shape)))] = part
        return values

    def _check_type(self) -> None:
        """Refuse numbers that NumPy has not as they are stored, such as some of 24 bits."""
        import h5py

        if self._stored.kind in "fiub" and self._node.id.get_type() != h5py.h5t.py_create(
            self._stored
        ):
            raise DataError(f"{self._where}: numbers of an unusual type; write {self.dtype}")

    def _chunk(self, place: tuple[int, ...]) -> np.ndarray:
        """Return the chunk that begins at a place; one that was never written is an error."""
        assert self.chunks is not None
        mask, content = self._node.id.read_direct_chunk(place)
        n_bytes = _n_bytes(self.chunks, self._stored)
        content = self._unpacked(bytes(content), mask, n_bytes)
        if len(content) != n_bytes:
            raise DataError(f"{self._where}: a chunk of {len(content)} bytes, not {n_bytes}")
        return np.frombuffer(content, self._stored).reshape(self.chunks)

    def _unpacked(self, content: bytes, mask: int, n_bytes: int) -> bytes:
        """Undo the filters of a chunk, the last one first; the mask says which were left out."""
        for number in reversed(range(self._plan.get_nfilters())):
            if mask >> number & 1:
                continue
            code, _, values, name = self._plan.get_filter(number)
            if code == _GZIP:
                content = zlib.decompressobj().decompress(content, n_bytes + _SUM)
            elif code == _SHUFFLE:
                size = values[0] if values else self._stored.itemsize
                content = _unshuffled(content, size)
            elif code == _CHECKSUM:
                content, checksum = content[:-_SUM], content[-_SUM:]
                if not _has_checksum(content, checksum):
                    raise DataError(f"{self._where}: damaged: a chunk of another checksum")
            else:
                kind = name.decode("ascii", "replace")
                raise DataError(f"{self._where}: packed by {kind!r}; accepted: gzip or none")
        return content

    def _texts(self, references: np.ndarray, file_size: int) -> np.ndarray:
        """Return the texts that references lead to, as bytes."""
        heaps = _Heaps(self._handle, self._where, self._node.file.userblock_size, file_size)
        flat = references.ravel()
        columns = (flat[name].tolist() for name in ("length", "heap", "number"))
        texts = np.empty(flat.size, object)
        texts[:] = [heaps.text(*reference) for reference in zip(*columns, strict=True)]
        return texts.reshape(references.shape)


class _Heaps:
    """The texts in an HDF5 file: global heaps, each of which is read once."""

    def __init__(self, handle: IO[bytes], where: str, base: int, file_size: int) -> None:
        self._handle, self._where, self._base = handle, where, base
        # Heaps do not overlap, so that all together are no larger than the file.
        self._left = file_size
        self._heaps: dict[int, dict[int, bytes]] = {}

    def text(self, length: int, heap: int, number: int) -> bytes:
        """Return the text of a reference."""
        if length == 0:
            return b""
        if heap not in self._heaps:
            self._heaps[heap] = dict(self._objects(heap))
        content = self._heaps[heap].get(number, b"")
        # A part of a text would be a copy for each reference.
        if length != len(content):
            raise DataError(f"{self._where}: a text that is not in the file")
        return content

    def _objects(self, heap: int) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the content of each object of a heap."""
        # 1) the heap itself
        self._handle.seek(min(self._base + heap, 1 << 62))
        start = self._handle.read(_HEAP.size)
        mark, version, size = _HEAP.unpack(start) if len(start) == _HEAP.size else (b"", 0, 0)
        if mark != b"GCOL" or version != 1 or not _HEAP.size <= size <= self._left:
            raise DataError(f"{self._where}: a heap of texts is damaged")
        self._left -= size
        content = self._handle.read(size - _HEAP.size)
        # 2) its objects, each of which begins at a multiple of 8; number 0 is what is free
        position = 0
        while position + _OBJECT.size <= len(content):
            number, _, n_bytes = _OBJECT.unpack_from(content, position)
            if number == 0:
                return
            position += _OBJECT.size
            if n_bytes > min(_MAX_TEXT, len(content) - position):
                raise DataError(f"{self._where}: a text of {n_bytes} bytes in a heap")
            yield number, content[position : position + n_bytes]
            position += -(-n_bytes // 8) * 8


def _n_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(map(int, shape)) * dtype.itemsize


def _unshuffled(content: bytes, size: int) -> bytes:
    """Return the bytes of numbers of which all first bytes were written, then all second ones."""
    n = len(content) // max(1, size)
    planes = np.frombuffer(content, np.uint8, n * size).reshape(size, n)
    return planes.T.tobytes() + content[n * size :]


def _has_checksum(content: bytes, checksum: bytes) -> bool:
    """Return whether bytes have this sum of Fletcher's, modulo 65535 of words of 16 bits."""
    words = np.frombuffer(content + bytes(len(content) % 2), ">u2").astype(np.uint64)
    weights = np.arange(len(words), 0, -1, dtype=np.uint64)
    sums = int(words.sum()), int((words * weights % 65535).sum())
    stored = int.from_bytes(checksum[:2], "little"), int.from_bytes(checksum[2:], "little")
    return all(a % 65535 == b % 65535 for a, b in zip(sums, stored, strict=True))
