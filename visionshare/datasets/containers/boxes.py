"""AVIF and HEIC: files of boxes; their lists are bounded, as decoders search them."""

from __future__ import annotations

from collections.abc import Iterator

from visionshare.datasets.containers.av1 import largest_frame
from visionshare.datasets.containers.container import Container, number

_MAX_BOXES = 4096
# Bytes of the lists of items and of frames, which decoders search again and again.
_MAX_LISTS = 256 << 10
# Of a frame of AV1, whatever size the file around it tells.
_MAX_PIXELS = 1 << 25


def read_avif(data: bytes) -> Container:
    """Return an AVIF file without EXIF data; its own properties say how it lies."""
    container = Container("AVIF", _without_exif(data))
    for kind, _, start, end in boxes(data, 0, len(data)):
        # Four bytes of version and flags come first.
        for inner, _, first, last in boxes(data, start + 4, end) if kind == b"meta" else ():
            if inner == b"iloc" and largest_frame(data, data[first:last]) > _MAX_PIXELS:
                raise ValueError(f"frames of more than {_MAX_PIXELS} pixels")
    return container


def read_heif(data: bytes) -> Container:
    """Return a HEIC file without EXIF data; its own properties say how it lies."""
    return Container("HEIF", _without_exif(data))


def _without_exif(data: bytes) -> bytes:
    parts = []
    for kind, begin, start, end in boxes(data, 0, len(data)):
        part = data[begin:end]
        if kind in (b"meta", b"moov"):
            if end - start > _MAX_LISTS:
                raise ValueError(f"lists of more than {_MAX_LISTS} bytes")
            # An item of a kind that no decoder knows.
            part = part.replace(b"Exif", b"none")
        parts.append(part)
    return b"".join(parts)


def boxes(data: bytes, position: int, last: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield kind, begin, begin of the content and end of each box."""
    for _ in range(_MAX_BOXES):
        if position + 8 > last:
            return
        length = number(data, position, 4)
        start = position + 8
        if length == 1:
            length = number(data, start, 8)
            start += 8
        end = last if length == 0 else min(last, position + length)
        if end < start:
            raise ValueError("a box of no length")
        yield data[position + 4 : position + 8], position, start, end
        position = end
    raise ValueError(f"more than {_MAX_BOXES} boxes")
