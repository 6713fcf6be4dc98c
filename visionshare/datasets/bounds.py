"""Bounds for files of strangers: what a file may unpack to, and what is read for one item of it."""

from __future__ import annotations

from typing import Any

from visionshare.errors import DataError

__all__ = ["BoundedFile", "Members", "check_count", "unpacked_limit"]

_FREE, _PER_BYTE = 64 << 20, 8
_FREE_ITEMS, _ITEM_BYTES = 100_000, 64
# Of packed parts in one file, and the bytes of a file that allow another.
_FREE_MEMBERS, _MEMBER_BYTES = 1000, 4096
_MARKS = (b"\x1f\x8b\x08", b"BZh")


def unpacked_limit(packed: int, most: int) -> int:
    """Return how many bytes a packed file may become."""
    # A few bytes can stand for any number of zeros. Pictures pack to a quarter or a tenth, so
    # that 64 MiB, and 8 bytes for each byte of the file, leave room for all but very empty ones.
    return min(most, _FREE + _PER_BYTE * packed)


def check_count(where: str, n_images: int, n_bytes: int) -> None:
    """Refuse more images than a file of so many bytes can well hold: each of them takes time."""
    most = _FREE_ITEMS + n_bytes // _ITEM_BYTES
    if n_images > most:
        raise DataError(
            f"{where}: {n_images} images in {n_bytes} bytes; at most {most} are accepted: "
            "larger images, or several files"
        )


class BoundedFile:
    """A binary file of which only so many bytes are read for one item."""

    def __init__(self, file: Any, most: int, forward: bool = True) -> None:
        self._file, self._most, self._left = file, most, most
        self._forward = forward

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
        if self._forward and (whence != 0 or offset < self._file.tell() - 1):
            raise ValueError("a size that is negative")
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the position."""
        return int(self._file.tell())

    def seekable(self) -> bool:
        """Return True."""
        return True


class Members:
    """A gzip or bzip2 file that is not made of very many packed parts."""

    def __init__(self, file: Any) -> None:
        self._file, self._left, self._read = file, _FREE_MEMBERS, 0

    def read(self, size: int = -1) -> bytes:
        """Read bytes, and count the parts that begin in them."""
        content = bytes(self._file.read(size))
        self._read += len(content)
        self._left -= sum(map(content.count, _MARKS))
        if self._left + self._read // _MEMBER_BYTES < 0:
            raise OSError("very many packed parts")
        return content

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
