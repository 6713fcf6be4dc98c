"""Bounds for files of strangers: what a file may unpack to, and what is read for one item of it."""

from __future__ import annotations

from typing import Any

__all__ = ["BoundedFile", "unpacked_limit"]

_FREE, _PER_BYTE = 64 << 20, 8


def unpacked_limit(packed: int, most: int) -> int:
    """Return how many bytes a packed file may become.

    A few bytes can stand for any number of zeros. Pictures pack to a quarter or a tenth, so that
    64 MiB, and 8 bytes for each byte of the file, leave room for all but very empty ones.

    Parameters
    ----------
    packed : int
        Bytes of the file.
    most : int
        What no file may exceed.

    Examples
    --------
    >>> unpacked_limit(1000, 1 << 30), unpacked_limit(1 << 30, 1 << 30)
    (67116864, 1073741824)
    """
    return min(most, _FREE + _PER_BYTE * packed)


class BoundedFile:
    """A binary file of which only so many bytes are read for one item, and only forward.

    Parsers read headers as long as these say they are, and go back where a size is negative.

    Parameters
    ----------
    file : binary file
    most : int
        Bytes that may be read until :meth:`renew` is called.

    Examples
    --------
    >>> import io
    >>> file = BoundedFile(io.BytesIO(b"abcdef"), 4)
    >>> file.read(3)
    b'abc'
    >>> file.read(3)
    Traceback (most recent call last):
    ValueError: headers of more than 4 bytes
    """

    def __init__(self, file: Any, most: int) -> None:
        self._file, self._most, self._left = file, most, most

    def renew(self) -> None:
        """Begin with the next item."""
        self._left = self._most

    def read(self, size: int = -1) -> bytes:
        """Read bytes, at most those that are left."""
        if not 0 <= size <= self._left:
            raise ValueError(f"headers of more than {self._most} bytes")
        self._left -= size
        return bytes(self._file.read(size))

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move forward, or back by the one byte that tarfile looks at again."""
        if whence != 0 or offset < self._file.tell() - 1:
            raise ValueError("a size that is negative")
        return int(self._file.seek(offset))

    def tell(self) -> int:
        """Return the position."""
        return int(self._file.tell())
