"""AVIF, HEIC and JPEG 2000: files of boxes; their lists are bounded, as decoders search them."""

from __future__ import annotations

from collections.abc import Iterator

from visionshare.datasets.containers.av1 import largest_frame
from visionshare.datasets.containers.container import Container

__all__ = ["read_avif", "read_heif", "read_jpeg2000"]

_MOST_BOXES = 4096
# Bytes of the lists of items and of frames, which decoders search again and again.
_MOST_LISTS = 256 << 10
_SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
_CODESTREAM = b"\xff\x4f\xff\x51"
_JP2_BOXES = (b"jP  ", b"ftyp", b"jp2h")
_TILE, _END, _COMMENT, _CODING = 0xFF90, 0xFFD9, 0xFF64, 0xFF52
# Markers that change how a component or a tile is coded.
_CHANGES = (_CODING, 0xFF53, 0xFF5F, 0xFF5E)
_MOST_SEGMENTS, _MOST_TILES = 4096, 4096
# Blocks, precincts and packets of a picture: each takes memory and time, also if it is empty.
_MOST_PARTS = 1 << 19
# Its coder decides for each bit: no other format takes as long for a byte.
_MOST_STREAM = 6 << 20
# Of a frame of AV1, whatever size the file around it tells.
_MOST_PIXELS = 1 << 25


def read_avif(data: bytes, all_pages: bool = False) -> Container:
    """Return an AVIF file without EXIF data; how it lies is said by its own properties."""
    for kind, _, start, end in _boxes(data, 0, len(data)):
        if kind == b"meta" and end - start <= _MOST_LISTS:
            for inner, _, first, last in _boxes(data, start + 4, end):
                if inner == b"iloc" and largest_frame(data, data[first:last]) > _MOST_PIXELS:
                    raise ValueError(f"frames of more than {_MOST_PIXELS} pixels")
    return Container("AVIF", _without_exif(data))


def read_heif(data: bytes, all_pages: bool = False) -> Container:
    """Return a HEIC file as :func:`read_avif` does an AVIF file."""
    return Container("HEIF", _without_exif(data))


def _without_exif(data: bytes) -> bytes:
    parts = []
    for kind, begin, start, end in _boxes(data, 0, len(data)):
        part = data[begin:end]
        if kind in (b"meta", b"moov"):
            if end - start > _MOST_LISTS:
                raise ValueError(f"lists of more than {_MOST_LISTS} bytes")
            # An item of a kind that no decoder knows.
            part = part.replace(b"Exif", b"none")
        parts.append(part)
    return b"".join(parts)


def read_jpeg2000(data: bytes, all_pages: bool = False) -> Container:
    """Return a JPEG 2000 of its header and its code stream, without comments."""
    if data.startswith(_CODESTREAM):
        size, stream = _stream(data)
        return Container("JPEG2000", stream, size)
    kept: list[bytes] = []
    for kind, begin, start, end in _boxes(data, 0, len(data)):
        if kind == b"jp2c":
            size, stream = _stream(data[start:end])
            # A length of 0: up to the end.
            return Container("JPEG2000", b"".join([*kept, b"\0\0\0\0jp2c", stream]), size)
        if kind == b"jp2h":
            # Only counted.
            for _ in _boxes(data, start, end):
                pass
        if kind in _JP2_BOXES:
            kept.append(data[begin:end])
    raise ValueError("no code stream")


def _boxes(data: bytes, position: int, last: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield kind, begin, begin of the content and end of each box."""
    for _ in range(_MOST_BOXES):
        if position + 8 > last:
            return
        length, start = int.from_bytes(data[position : position + 4], "big"), position + 8
        if length == 1:
            length, start = int.from_bytes(data[start : start + 8], "big"), start + 8
        end = last if length == 0 else min(last, position + length)
        if end < start:
            raise ValueError("a box of no length")
        yield data[position + 4 : position + 8], position, start, end
        position = end
    raise ValueError(f"more than {_MOST_BOXES} boxes")


def _stream(data: bytes) -> tuple[tuple[int, int], bytes]:
    """Return width and height of a code stream, and the stream without comments."""
    if not data.startswith(_CODESTREAM):
        raise ValueError("no code stream")
    if len(data) > _MOST_STREAM:
        raise ValueError(
            f"JPEG 2000 of more than {_MOST_STREAM >> 20} MiB takes seconds: save it as PNG or TIFF"
        )
    kept = [data[:2]]
    coding = b""
    position = 2
    for _ in range(_MOST_SEGMENTS):
        marker = int.from_bytes(data[position : position + 2], "big")
        if marker in (_TILE, _END) or position + 4 > len(data):
            break
        end = position + 2 + max(2, int.from_bytes(data[position + 2 : position + 4], "big"))
        if marker == _CODING:
            coding = data[position + 4 : end]
        elif marker in _CHANGES:
            raise ValueError("components that are coded in several ways")
        if marker != _COMMENT:
            kept.append(data[position:end])
        position = end
    else:
        raise ValueError(f"more than {_MOST_SEGMENTS} segments")
    _check_tile_headers(data, position)
    size = _checked_size(data[8:], coding)
    return size, b"".join([*kept, data[position:]])


def _check_tile_headers(data: bytes, position: int) -> None:
    """Check that no tile is coded in its own way."""
    for _ in range(_MOST_TILES):
        if int.from_bytes(data[position : position + 2], "big") != _TILE:
            return
        length = int.from_bytes(data[position + 6 : position + 10], "big")
        at = position + 12
        for _ in range(_MOST_SEGMENTS):
            marker = int.from_bytes(data[at : at + 2], "big")
            if marker in _CHANGES:
                raise ValueError("tiles that are coded in several ways")
            if not 0xFF50 <= marker <= 0xFF6F:
                break
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
        if length == 0:
            return
        position += max(12, length)
    raise ValueError(f"more than {_MOST_TILES} parts of tiles")


def _checked_size(header: bytes, coding: bytes) -> tuple[int, int]:
    """Return width and height, once the parts that a decoder makes of the picture are few."""
    numbers = [int.from_bytes(header[i : i + 4], "big") for i in range(0, 24, 4)]
    right, bottom, left, top, tile_width, tile_height = numbers
    n_components = int.from_bytes(header[32:34], "big")
    width, height = right - left, bottom - top
    if min(width, height, tile_width, tile_height) < 1 or len(coding) < 10:
        raise ValueError("no size, or no way of coding")
    n_tiles = -(-right // tile_width) * -(-bottom // tile_height)
    n_layers, n_levels = int.from_bytes(coding[2:4], "big"), coding[5]
    block_side = (coding[6] & 15) + 2, (coding[7] & 15) + 2
    n_blocks = (width >> block_side[0]) * (height >> block_side[1])
    # Without sizes of its own a precinct holds everything.
    sides = coding[10:] if coding[0] & 1 else b"\xff"
    smallest = min(side & 15 for side in sides), min(side >> 4 for side in sides)
    n_precincts = ((width >> smallest[0]) + 1) * ((height >> smallest[1]) + 1)
    n_packets = (n_tiles + n_precincts) * (n_levels + 1) * n_layers
    if n_components * (n_blocks + n_packets) > _MOST_PARTS:
        raise ValueError("very many parts")
    return width, height
