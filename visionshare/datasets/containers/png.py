"""PNG: header, palette, transparency and pixels, without all other chunks."""

from __future__ import annotations

import struct
import zlib

from visionshare.datasets.containers.container import (
    Container,
    exif_orientation,
    xmp_orientation,
)

__all__ = ["read_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_CHUNKS = 1 << 16
# Bytes of pixels: those of 2²⁶ with four channels of 8 bits.
_MOST_BYTES = 1 << 28
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_CHUNK = struct.Struct(">I4s")
_ANIMATION = (b"acTL", b"fcTL", b"fdAT")
# The keyword of XMP, its flags (not compressed) and two empty texts.
_XMP = b"XML:com.adobe.xmp\0\0\0\0\0"
# EXIF data as ImageMagick writes it: in hexadecimal digits, after three lines.
_RAW_EXIF = b"Raw profile type exif\0"
_MOST_TEXT = 1 << 17


def read_png(data: bytes, all_pages: bool = False) -> Container:
    """Return a PNG of its critical chunks, its pixels in one."""
    head = [_SIGNATURE]
    pixels: list[bytes] = []
    animation: list[bytes] = []
    width = height = 0
    n_pages = orientation = 1
    position = len(_SIGNATURE)
    for _ in range(_MOST_CHUNKS):
        if position + 8 > len(data):
            break
        length, kind = _CHUNK.unpack_from(data, position)
        start, end = position + 8, position + 8 + length
        position = end + 4
        if kind == b"IDAT":
            pixels.append(data[start:end])
        elif kind == b"IEND":
            break
        elif kind in (b"IHDR", b"PLTE", b"tRNS"):
            head.append(data[start - 8 : position])
            if kind == b"IHDR":
                width, height, depth, color = struct.unpack_from(">IIBB", data, start)
                if width * height * depth * _CHANNELS.get(color, 1) > 8 * _MOST_BYTES:
                    raise ValueError(f"{width}×{height} pixels of {depth} bits are too many")
        elif kind in _ANIMATION:
            if kind == b"acTL":
                n_pages = max(1, int.from_bytes(data[start : start + 4], "big"))
            # What belongs to a frame after the pixels of the first stands behind them.
            if all_pages:
                (animation if pixels else head).append(data[start - 8 : position])
        elif orientation == 1:
            orientation = _orientation(kind, data[start : min(end, start + _MOST_TEXT)])
    else:
        raise ValueError(f"more than {_MOST_CHUNKS} chunks")
    is_whole = position <= len(data)
    parts = [*head, _chunk(b"IDAT", b"".join(pixels)), *animation]
    # Without an end the decoder sees that pixels are missing.
    parts += [_chunk(b"IEND", b"")] if is_whole else []
    return Container("PNG", b"".join(parts), (width, height), orientation, n_pages)


def _orientation(kind: bytes, content: bytes) -> int:
    """Return the orientation that a chunk names, 1 where it names none."""
    if kind == b"eXIf":
        return exif_orientation(content)
    if kind == b"iTXt" and content.startswith(_XMP):
        return xmp_orientation(content)
    if kind in (b"tEXt", b"zTXt") and content.startswith(_RAW_EXIF):
        text = content[len(_RAW_EXIF) :]
        if kind == b"zTXt":
            text = zlib.decompressobj().decompress(text[1:], _MOST_TEXT)
        digits = b"".join(text.split(b"\n")[3:])
        return exif_orientation(bytes.fromhex(digits.decode("ascii")))
    return 1


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return b"".join((_CHUNK.pack(len(content), kind), content, checksum.to_bytes(4, "big")))
