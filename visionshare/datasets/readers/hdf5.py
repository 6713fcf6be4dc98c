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
from typing import IO, Any

import numpy as np

from visionshare.datasets.readers.bounds import unpacked_limit
from visionshare.errors import DataError

_MAX_BYTES = 8 << 30
# Of one text.
_MAX_TEXT = 1 << 16
# A reference to a text: its length, the heap that it is in, and its number there.
_REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])
# A heap: its mark, version and size. An object in it: its number, count of references and size.
_HEAP = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HH4xQ")
# Filters of chunks, and the bytes of a checksum.
_GZIP = 1
_SHUFFLE = 2
_CHECKSUM = 3
_CHECKSUM_BYTES = 4
# Chunks that every file may have, and bytes of a file for each further one.
_FREE_CHUNKS = 10_000
_BYTES_PER_CHUNK = 100


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
        self.shape: tuple[int, ...] = node.shape
        self.dtype: np.dtype[Any] = node.dtype
        self.chunks: tuple[int, ...] | None = node.chunks
        self._node = node
        self._handle = handle
        self._where = where
        self._is_text = is_text
        self._stored: np.dtype[Any] = _REFERENCE if is_text else node.dtype
        plan = node.id.get_create_plist()
        self._filters = [plan.get_filter(number) for number in range(plan.get_nfilters())]
        self._file_size = handle.seek(0, os.SEEK_END)

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return some rows; all with ``[:]``."""
        if not self.shape:
            raise DataError(f"{self._where}: a single value, no array")
        start, stop, _ = rows.indices(self.shape[0])
        n_bytes = max(0, stop - start) * self._row_bytes
        most = unpacked_limit(self._file_size, _MAX_BYTES)
        if n_bytes > most:
            raise DataError(f"{self._where}: {n_bytes} bytes, at most {most} are accepted")
        read = self._from_one_piece if self.chunks is None else self._from_chunks
        stored = read(start, stop)
        if not self._is_text:
            return stored
        heaps = _Heaps(self._handle, self._where, self._node.file.userblock_size, self._file_size)
        texts = np.empty(stored.size, object)
        texts[:] = [heaps.text(*reference) for reference in stored.ravel().tolist()]
        return texts.reshape(stored.shape)

    @property
    def _row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self._stored.itemsize

    def _from_one_piece(self, start: int, stop: int) -> np.ndarray:
        """Return rows of an array that is not in chunks."""
        offset = self._node.id.get_offset()
        if offset is not None and offset + self.shape[0] * self._row_bytes > self._file_size:
            raise DataError(f"{self._where}: values beyond the end of the file")
        if not self._is_text:
            return np.asarray(self._node[start:stop])
        if offset is None:
            raise DataError(f"{self._where}: texts that are not in the file")
        self._handle.seek(offset + start * self._row_bytes)
        content = self._handle.read((stop - start) * self._row_bytes)
        return np.frombuffer(content, self._stored).reshape(stop - start, *self.shape[1:])

    def _from_chunks(self, start: int, stop: int) -> np.ndarray:
        """Return rows of an array in chunks."""
        import h5py

        assert self.chunks is not None
        # 1) which chunks have a part of the rows
        first = start // self.chunks[0] * self.chunks[0]
        ends = (stop, *self.shape[1:])
        places = [range(first, stop, self.chunks[0])]
        places += [range(0, *side) for side in zip(self.shape[1:], self.chunks[1:], strict=True)]
        most = _FREE_CHUNKS + self._file_size // _BYTES_PER_CHUNK
        if math.prod(map(len, places)) > most:
            raise DataError(f"{self._where}: too many chunks; write larger ones")
        # 2) the library reads what is not packed, and compares checksums
        is_packed = not {code for code, *_ in self._filters} <= {_SHUFFLE, _CHECKSUM}
        if not self._is_text and not is_packed:
            return np.asarray(self._node[start:stop])
        # 3) NumPy lacks some types of numbers, such as 24 bits
        of_dtype = self._is_text or self._stored.kind == "S"
        if not of_dtype and self._node.id.get_type() != h5py.h5t.py_create(self._stored):
            raise DataError(f"{self._where}: numbers of an unusual type; write {self.dtype}")
        # 4) each chunk, without what is before the rows or beyond the array
        values = np.zeros((stop - start, *self.shape[1:]), self._stored)
        for place in itertools.product(*places):
            before = max(start - place[0], 0)
            inside = tuple(slice(0, end - low) for end, low in zip(ends, place, strict=True))
            part = self._chunk(place)[inside][before:]
            lows = (place[0] + before - start, *place[1:])
            values[tuple(map(slice, lows, np.add(lows, part.shape)))] = part
        return values

    def _chunk(self, place: tuple[int, ...]) -> np.ndarray:
        """Return the chunk that begins at a place; one that was never written is an error."""
        assert self.chunks is not None
        mask, packed = self._node.id.read_direct_chunk(place)
        content = bytes(packed)
        n_bytes = math.prod(self.chunks) * self._stored.itemsize
        # Filters are undone from the last to the first; the mask says which were left out.
        for number, (code, _, values, name) in reversed(list(enumerate(self._filters))):
            if mask >> number & 1:
                continue
            if code == _GZIP:
                unpacker = zlib.decompressobj()
                content = unpacker.decompress(content, n_bytes + _CHECKSUM_BYTES)
            elif code == _SHUFFLE:
                # All first bytes of the numbers were written, then all second ones.
                size = max(1, values[0] if values else self._stored.itemsize)
                n = len(content) // size
                planes = np.frombuffer(content, np.uint8, n * size).reshape(size, n)
                content = planes.T.tobytes() + content[n * size :]
            elif code == _CHECKSUM:
                # Packed bytes have a checksum of their own.
                content = content[:-_CHECKSUM_BYTES]
            else:
                kind = name.decode("ascii", "replace")
                raise DataError(f"{self._where}: packed by {kind!r}; accepted: gzip or none")
        if len(content) != n_bytes:
            raise DataError(f"{self._where}: a chunk of {len(content)} bytes, not {n_bytes}")
        return np.frombuffer(content, self._stored).reshape(self.chunks)


class _Heaps:
    """The texts in an HDF5 file: global heaps, each of which is read once."""

    def __init__(self, handle: IO[bytes], where: str, base: int, file_size: int) -> None:
        self._handle = handle
        self._where = where
        self._base = base
        # Heaps do not overlap, so that all together are no larger than the file.
        self._left = file_size
        self._heaps: dict[int, dict[int, bytes]] = {}

    def text(self, length: int, heap: int, number: int) -> bytes:
        """Return the text of a reference."""
        if length == 0:
            return b""
        if heap not in self._heaps:
            self._heaps[heap] = self._objects(heap)
        content = self._heaps[heap].get(number, b"")
        # A part of a text would be a copy for each reference.
        if length != len(content):
            raise DataError(f"{self._where}: a text that is not in the file")
        return content

    def _objects(self, heap: int) -> dict[int, bytes]:
        """Return the content of each object of a heap by its number."""
        # 1) the heap itself
        self._handle.seek(min(self._base + heap, 1 << 62))
        start = self._handle.read(_HEAP.size).ljust(_HEAP.size, b"\0")
        mark, version, size = _HEAP.unpack(start)
        if mark != b"GCOL" or version != 1 or not _HEAP.size <= size <= self._left:
            raise DataError(f"{self._where}: a heap of texts is damaged")
        self._left -= size
        content = self._handle.read(size - _HEAP.size)
        # 2) its objects, each of which begins at a multiple of 8; number 0 is what is free
        found = {}
        position = 0
        while position + _OBJECT.size <= len(content):
            number, _, n_bytes = _OBJECT.unpack_from(content, position)
            if number == 0:
                break
            position += _OBJECT.size
            if n_bytes > min(_MAX_TEXT, len(content) - position):
                raise DataError(f"{self._where}: a text of {n_bytes} bytes in a heap")
            found[number] = content[position : position + n_bytes]
            position += -(-n_bytes // 8) * 8
        return found
