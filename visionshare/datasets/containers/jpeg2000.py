"""JPEG 2000: its header and code stream, once the parts that a decoder makes of it are few."""

from __future__ import annotations

from visionshare.datasets.containers.boxes import boxes
from visionshare.datasets.containers.container import Container, number

_CODESTREAM = b"\xff\x4f\xff\x51"
_KEPT = (b"jP  ", b"ftyp", b"jp2h")
_TILE = 0xFF90
_END = 0xFFD9
_COMMENT = 0xFF64
_CODING = 0xFF52
# Markers that change how a component or a tile is coded.
_CHANGES = (_CODING, 0xFF53, 0xFF5F, 0xFF5E)
_MAX_SEGMENTS = 4096
_MAX_TILES = 4096
# Blocks, precincts and packets of a picture: each takes memory and time, also if it is empty.
_MAX_PARTS = 1 << 19
# Its coder decides for each bit: no other format takes as long for a byte.
_MAX_STREAM = 6 << 20


def read_jpeg2000(data: bytes) -> Container:
    """Return a JPEG 2000 of its header and its code stream, without comments."""
    if data.startswith(_CODESTREAM):
        size, stream = _checked_stream(data)
        return Container("JPEG2000", stream, size)
    kept: list[bytes] = []
    for kind, begin, start, end in boxes(data, 0, len(data)):
        if kind == b"jp2c":
            size, stream = _checked_stream(data[start:end])
            # A length of 0: up to the end.
            return Container("JPEG2000", b"".join([*kept, b"\0\0\0\0jp2c", stream]), size)
        if kind == b"jp2h":
            # They are counted: too many raise.
            list(boxes(data, start, end))
        if kind in _KEPT:
            kept.append(data[begin:end])
    raise ValueError("no code stream")


def _checked_stream(data: bytes) -> tuple[tuple[int, int], bytes]:
    """Return width and height of a code stream, and the stream without comments."""
    if not data.startswith(_CODESTREAM):
        raise ValueError("no code stream")
    if len(data) > _MAX_STREAM:
        raise ValueError(
            f"JPEG 2000 of more than {_MAX_STREAM >> 20} MiB takes seconds: save it as PNG or TIFF"
        )
    kept = [data[:2]]
    coding = b""
    position = 2
    for _ in range(_MAX_SEGMENTS):
        marker = number(data, position, 2)
        if marker in (_TILE, _END) or position + 4 > len(data):
            break
        end = _end_of_segment(data, position)
        if marker == _CODING:
            coding = data[position + 4 : end]
        elif marker in _CHANGES:
            raise ValueError("components that are coded in several ways")
        if marker != _COMMENT:
            kept.append(data[position:end])
        position = end
    else:
        raise ValueError(f"more than {_MAX_SEGMENTS} segments")
    _check_tiles(data, position)
    return _checked_size(data[8:], coding), b"".join([*kept, data[position:]])


def _end_of_segment(data: bytes, position: int) -> int:
    return position + 2 + max(2, number(data, position + 2, 2))


def _check_tiles(data: bytes, position: int) -> None:
    """Check that no tile is coded in its own way."""
    for _ in range(_MAX_TILES):
        if number(data, position, 2) != _TILE:
            return
        at = position + 12
        for _ in range(_MAX_SEGMENTS):
            marker = number(data, at, 2)
            if marker in _CHANGES:
                raise ValueError("tiles that are coded in several ways")
            if not 0xFF50 <= marker <= 0xFF6F:
                break
            at = _end_of_segment(data, at)
        length = number(data, position + 6, 4)
        if length == 0:
            return
        position += max(12, length)
    raise ValueError(f"more than {_MAX_TILES} parts of tiles")


def _checked_size(header: bytes, coding: bytes) -> tuple[int, int]:
    """Return width and height, once the parts that a decoder makes of the picture are few."""
    right, bottom, left, top, tile_width, tile_height = (number(header, 4 * i, 4) for i in range(6))
    width = right - left
    height = bottom - top
    if min(width, height, tile_width, tile_height) < 1 or len(coding) < 10:
        raise ValueError("no size, or no way of coding")
    n_components = number(header, 32, 2)
    n_layers = number(coding, 2, 2)
    n_levels = coding[5]
    n_tiles = -(-right // tile_width) * -(-bottom // tile_height)
    # The logarithms of a block's sides, less 2.
    n_blocks = (width >> (coding[6] & 15) + 2) * (height >> (coding[7] & 15) + 2)
    # Without sizes of its own a precinct holds everything.
    precincts = coding[10:] if coding[0] & 1 else b"\xff"
    across = (width >> min(side & 15 for side in precincts)) + 1
    down = (height >> min(side >> 4 for side in precincts)) + 1
    n_packets = (n_tiles + across * down) * (n_levels + 1) * n_layers
    if n_components * (n_blocks + n_packets) > _MAX_PARTS:
        raise ValueError("very many parts")
    return width, height
