"""AV1 in AVIF: the size that its pixels have indeed, which the file around them may belie."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["largest_frame"]

_SEQUENCE, _MOST_UNITS, _MOST_ITEMS = 1, 1000, 4096


def largest_frame(data: bytes, locations: bytes) -> int:
    """Return the most pixels that a frame of an AVIF file may have, 0 where none tells."""
    return max(
        (size for start, end in _extents(locations) for size in _frames(data[start:end])),
        default=0,
    )


def _extents(box: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the parts of items begin and end in the file."""
    version, position = box[0], 6
    offset_size, length_size = box[4] >> 4, box[4] & 15
    base_size, index_size = box[5] >> 4, (box[5] & 15) if version else 0

    def number(size: int) -> int:
        nonlocal position
        position += size
        return int.from_bytes(box[position - size : position], "big")

    wide = 4 if version == 2 else 2
    for _ in range(min(number(wide), _MOST_ITEMS)):
        number(wide)
        # Of the other methods the data is inside of the lists, which are small.
        method = number(2) & 15 if version else 0
        number(2)
        base = number(base_size)
        for _ in range(min(number(2), _MOST_ITEMS)):
            number(index_size)
            start = base + number(offset_size)
            length = number(length_size)
            if method == 0 and position <= len(box):
                yield start, start + length


def _frames(item: bytes) -> Iterator[int]:
    """Yield the pixels of frames that the sequence headers of an item allow."""
    position = 0
    for _ in range(_MOST_UNITS):
        if position >= len(item):
            return
        head = item[position]
        has_extension, has_size = head >> 2 & 1, head >> 1 & 1
        position += 1 + has_extension
        size, shift = 0, 0
        while has_size and position < len(item):
            size |= (item[position] & 127) << shift
            shift += 7
            position += 1
            if item[position - 1] < 128 or shift > 56:
                break
        end = position + size if has_size else len(item)
        if head >> 3 & 15 == _SEQUENCE:
            yield _frame_of(item[position : min(end, position + 64)])
        position = end


def _frame_of(header: bytes) -> int:
    """Return the pixels of the largest frame, from a sequence header."""
    bits = int.from_bytes(header, "big")
    left = 8 * len(header)

    def take(n: int) -> int:
        nonlocal left
        left -= n
        if left < 0:
            raise ValueError("a header that ends early")
        return bits >> left & (1 << n) - 1

    # Profile; whether it is a still picture.
    take(4)
    if take(1):
        # The header is a short one: a level follows.
        take(5)
    else:
        if take(1):
            raise ValueError("AV1 with times of its own")
        has_delay = take(1)
        for _ in range(take(5) + 1):
            take(12)
            if take(5) > 7:
                take(1)
            if has_delay and take(1):
                take(4)
    wide, high = take(4) + 1, take(4) + 1
    return (take(wide) + 1) * (take(high) + 1)
