"""What the structure of a picture's file says, before any pixel is decoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["TURNED", "Container", "exif_orientation", "xmp_orientation"]

#: Orientations in which height and width change places.
TURNED = (5, 6, 7, 8)
_ORIENTATION_TAG = 0x0112
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')
# Bytes of metadata that are searched: their orientation stands near the front.
_MOST_METADATA = 1 << 16


@dataclass(frozen=True)
class Container:
    """A picture's file, reduced to what a decoder needs."""

    format: str
    data: bytes
    size: tuple[int, int] | None = None
    orientation: int = 1
    n_pages: int = 1
    page: Callable[[int], Container] | None = None


def exif_orientation(exif: bytes) -> int:
    """Return the orientation that EXIF data names, 1 where it names none."""
    # Only the first directory is searched, for this entry alone.
    exif = exif[:_MOST_METADATA].removeprefix(b"Exif\0\0")
    orders = {b"II": "little", b"MM": "big"}
    order = orders.get(exif[:2])
    if order is None:
        return 1

    def number(start: int, size: int) -> int:
        return int.from_bytes(exif[start : start + size], order)  # type: ignore[arg-type]

    first = number(4, 4)
    for entry in range(first + 2, min(first + 2 + 12 * number(first, 2), len(exif)), 12):
        if number(entry, 2) == _ORIENTATION_TAG:
            value = number(entry + 8, 2)
            return value if 1 <= value <= 8 else 1
    return 1


def xmp_orientation(xmp: bytes) -> int:
    """Return the orientation that an XMP packet names, 1 where it names none."""
    found = _XMP_ORIENTATION.search(xmp, 0, _MOST_METADATA)
    return int(found[1]) if found else 1
