"""The structure of a picture's file, known before any pixel is decoded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

#: Orientations in which height and width change places.
TURNED = (5, 6, 7, 8)
_ORIENTATION_TAG = 0x0112
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')
#: Bytes of metadata that are searched: their orientation stands near the front.
MAX_METADATA = 1 << 16


@dataclass(frozen=True)
class Container:
    """A picture's file, reduced to what a decoder needs."""

    format: str
    data: bytes
    size: tuple[int, int] | None = None
    orientation: int = 1
    n_pages: int = 1
    # Returns a page as a file of its own; without it, the decoder finds pages in the data.
    page: Callable[[int], Container] | None = None


def number(data: bytes, start: int, size: int, order: Literal["little", "big"] = "big") -> int:
    """Return the whole number in some bytes."""
    return int.from_bytes(data[start : start + size], order)


def orientation_of(exif: bytes, xmp: bytes = b"") -> int:
    """Return the orientation that EXIF data names, else the one that XMP names, else 1."""
    orientation = _exif_orientation(exif[:MAX_METADATA].removeprefix(b"Exif\0\0"))
    if orientation != 1:
        return orientation
    found = _XMP_ORIENTATION.search(xmp, 0, MAX_METADATA)
    return int(found[1]) if found else 1


def _exif_orientation(exif: bytes) -> int:
    orders: dict[bytes, Literal["little", "big"]] = {b"II": "little", b"MM": "big"}
    order = orders.get(exif[:2])
    if order is None:
        return 1
    # Only the first directory is searched, for this entry alone.
    start = number(exif, 4, 4, order) + 2
    end = start + 12 * number(exif, start - 2, 2, order)
    for entry in range(start, min(end, len(exif)), 12):
        if number(exif, entry, 2, order) == _ORIENTATION_TAG:
            orientation = number(exif, entry + 8, 2, order)
            return orientation if 1 <= orientation <= 8 else 1
    return 1
