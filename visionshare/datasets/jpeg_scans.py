"""Scans of a JPEG file, counted before it is decoded: each takes as long as the whole picture."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from visionshare.errors import DataError

__all__ = ["MAX_SCANS", "check_scans", "n_scans"]

#: Scans that are accepted at most; encoders write 10 or so.
MAX_SCANS = 100
_SCAN = b"\xff\xda"
# A marker, other than those in the data of a scan: stuffed bytes and restarts.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
_END, _ALONE = 0xD9, (0x01, 0xD8)
_BLOCK = 1 << 20


def check_scans(opened: Any, name: str) -> None:
    """Refuse a JPEG of more than :data:`MAX_SCANS` scans; pictures of other formats pass.

    Parameters
    ----------
    opened : PIL.Image.Image
        As it was opened; no pixel is decoded.
    name : str
        What an error calls it.

    Raises
    ------
    DataError
        If it has more.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (9, 5)).save(file, "jpeg", progressive=True)
    >>> check_scans(Image.open(file), "a.jpg")
    """
    if opened.format not in ("JPEG", "MPO"):
        return
    file: BinaryIO = opened.fp
    position = file.tell()
    # Most files have few of these bytes wherever they stand.
    if _count(file) > MAX_SCANS:
        file.seek(0)
        found = n_scans(file.read())
        if found > MAX_SCANS:
            raise DataError(f"{name}: cannot be read as an image ({found} scans are too many)")
    file.seek(position)


def n_scans(data: bytes) -> int:
    """Return how many scans a JPEG file has up to its end; what segments hold is passed over.

    Examples
    --------
    >>> n_scans(b"\\xff\\xe1\\x00\\x04\\xff\\xda" + 2 * b"\\xff\\xda\\x00\\x02..\\xff\\x00.")
    2
    """
    found = position = 0
    while match := _MARKER.search(data, position):
        marker, position = match[1][0], match.end()
        if marker == _END:
            break
        found += marker == _SCAN[1]
        if marker not in _ALONE:
            position += max(2, int.from_bytes(data[position : position + 2], "big"))
    return found


def _count(file: BinaryIO) -> int:
    file.seek(0)
    found, last = 0, b""
    while block := file.read(_BLOCK):
        found += (last + block).count(_SCAN)
        last = block[-1:]
    return found
