"""Bounds for files of strangers: what a file may unpack to, and what is read for one item of it."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from visionshare.errors import DataError
from visionshare.files.storage import open_file

_FREE_BYTES = 64 << 20
_PER_BYTE = 8
_FREE_ITEMS = 100_000
_ITEM_BYTES = 64
# Of packed parts in one file, and the bytes of a file that allow another.
_FREE_MEMBERS = 1000
_MEMBER_BYTES = 4096
_GZIP = b"\x1f\x8b"
_MEMBER_MARKS = (b"\x1f\x8b\x08", b"BZh")


def unpacked_limit(packed: int, most: int) -> int:
    """Return how many bytes a packed file may become."""
    # A few bytes can stand for any number of zeros. Pictures pack to a quarter or a tenth, so
    # that 64 MiB, and 8 bytes for each byte of the file, leave room for all but very empty ones.
    return min(most, _FREE_BYTES + _PER_BYTE * packed)


def check_count(where: str, n_images: int, n_bytes: int) -> None:
    """Refuse more images than a file of so many bytes can well hold: each of them takes time."""
    most = _FREE_ITEMS + n_bytes // _ITEM_BYTES
    if n_images > most:
        raise DataError(
            f"{where}: {n_images} images in {n_bytes} bytes; at most {most} are accepted: "
            "larger images, or several files"
        )


@contextmanager
def unpacked(path: str | os.PathLike[str], max_bytes: int) -> Iterator[tuple[IO[bytes], int]]:
    """Give a file, unpacked where it is gzip or bzip2, and the bytes that it may have."""
    with open_file(path) as file:
        is_gzip = file.read(2) == _GZIP
        most = unpacked_limit(file.seek(0, os.SEEK_END), max_bytes)
        file.seek(0)
        if is_gzip:
            yield gzip.GzipFile(fileobj=Members(file)), most  # type: ignore[misc]
        elif os.fspath(path).endswith(".bz2"):
            yield bz2.BZ2File(Members(file)), most
        else:
            yield file, most


class _Wrapped:
    """A binary file of which not all is read."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the position."""
        return int(self._file.tell())

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True


class BoundedFile(_Wrapped):
    """A file of which only so many bytes are read for one item."""

    def __init__(self, file: Any, most: int, only_forward: bool = False) -> None:
        super().__init__(file)
        self._most = most
        self._left = most
        self._only_forward = only_forward

    def renew(self) -> None:
        """Begin with the next item."""
        self._left = self._most

    def read(self, size: int = -1) -> bytes:
        """Read bytes, at most those that are left."""
        if size > self._left:
            raise ValueError(f"headers of more than {self._most} bytes: {size} bytes at once")
        content = bytes(self._file.read(size if size >= 0 else self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise ValueError(f"headers of more than {self._most} bytes")
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move; where only forward, by one byte back at most, which tarfile looks at again."""
        if self._only_forward and (whence != 0 or offset < self.tell() - 1):
            raise ValueError("a size that is negative")
        return super().seek(offset, whence)


class Members(_Wrapped):
    """A gzip or bzip2 file that is not made of very many packed parts."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._left = _FREE_MEMBERS
        self._n_read = 0

    def read(self, size: int = -1) -> bytes:
        """Read bytes, and count the parts that begin in them."""
        content = bytes(self._file.read(size))
        self._n_read += len(content)
        self._left -= sum(map(content.count, _MEMBER_MARKS))
        if self._left + self._n_read // _MEMBER_BYTES < 0:
            raise OSError("very many packed parts")
        return content
