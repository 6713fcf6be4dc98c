"""AVIF and HEIC: files of boxes; their lists are bounded, as decoders search them.

Of AV1 in AVIF the size of the pixels is read too, which the file around them may belie.
"""

from __future__ import annotations

from collections.abc import Iterator

from visionshare.datasets.containers.container import Container, number

_MAX_BOXES = 4096
# Bytes of the lists of items and of frames, which decoders search again and again.
_MAX_LISTS = 256 << 10
# Of a frame of AV1, whatever size the file around it tells.
_MAX_PIXELS = 1 << 25
_SEQUENCE_HEADER = 1
_MAX_UNITS = 1000
_MAX_ITEMS = 4096
# Bytes of a sequence header that are looked at.
_MAX_HEADER = 64


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


def largest_frame(data: bytes, locations: bytes) -> int:
    """Return the most pixels that a frame of an AVIF file may have, 0 where none tells."""
    largest = 0
    for start, end in _extents(locations):
        largest = max(largest, *_frames(data[start:end]), 0)
    return largest


class _Bits:
    """Reads whole numbers of some bits, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def take(self, n: int) -> int:
        self._left -= n
        if self._left < 0:
            raise ValueError("a header that ends early")
        return self._value >> self._left & (1 << n) - 1


def _extents(box: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the parts of items begin and end in the file."""
    version = box[0]
    offset_size = box[4] >> 4
    length_size = box[4] & 15
    base_size = box[5] >> 4
    index_size = box[5] & 15 if version else 0
    position = 6

    def number(size: int) -> int:
        nonlocal position
        position += size
        return int.from_bytes(box[position - size : position], "big")

    wide = 4 if version == 2 else 2
    for _ in range(min(number(wide), _MAX_ITEMS)):
        number(wide)
        # Of the other methods the data is inside of the lists, which are small.
        method = number(2) & 15 if version else 0
        number(2)
        base = number(base_size)
        for _ in range(min(number(2), _MAX_ITEMS)):
            number(index_size)
            start = base + number(offset_size)
            length = number(length_size)
            if method == 0 and position <= len(box):
                yield start, start + length


def _frames(item: bytes) -> Iterator[int]:
    """Yield the pixels of frames that the sequence headers of an item allow."""
    position = 0
    for _ in range(_MAX_UNITS):
        if position >= len(item):
            return
        head = item[position]
        has_extension = head >> 2 & 1
        has_size = head >> 1 & 1
        position += 1 + has_extension
        size = shift = 0
        # 7 bits in each byte; the highest bit says whether another follows.
        while has_size and position < len(item):
            byte = item[position]
            size |= (byte & 127) << shift
            shift += 7
            position += 1
            if byte < 128 or shift > 56:
                break
        end = position + size if has_size else len(item)
        if head >> 3 & 15 == _SEQUENCE_HEADER:
            yield _frame_of(item[position : min(end, position + _MAX_HEADER)])
        position = end


def _frame_of(header: bytes) -> int:
    """Return the pixels of the largest frame, from a sequence header."""
    bits = _Bits(header)
    # Profile; whether it is a still picture.
    bits.take(4)
    is_short = bits.take(1)
    if is_short:
        # A level follows.
        bits.take(5)
    else:
        if bits.take(1):
            raise ValueError("AV1 with times of its own")
        has_delay = bits.take(1)
        n_points = bits.take(5) + 1
        for _ in range(n_points):
            bits.take(12)
            if bits.take(5) > 7:
                bits.take(1)
            if has_delay and bits.take(1):
                bits.take(4)
    width_bits = bits.take(4) + 1
    height_bits = bits.take(4) + 1
    return (bits.take(width_bits) + 1) * (bits.take(height_bits) + 1)
