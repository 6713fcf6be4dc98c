"""PNG: header, palette, transparency, pixels and frames, without all other chunks."""

from __future__ import annotations

import struct
import zlib

from visionshare.datasets.containers.container import (
    MAX_METADATA,
    Container,
    number,
    orientation_of,
)

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_CHUNKS = 1 << 16
# Bytes of pixels at most: 2²⁶ pixels with four channels of 8 bits.
_MAX_BYTES = 1 << 28
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_CHUNK = struct.Struct(">I4s")
_HEADER = (b"IHDR", b"PLTE", b"tRNS")
_ANIMATION = (b"acTL", b"fcTL", b"fdAT")
# The keyword of XMP, its flags (not compressed) and two empty texts.
_XMP = b"XML:com.adobe.xmp\0\0\0\0\0"
# EXIF data as ImageMagick writes it: in hexadecimal digits, after three lines.
_RAW_EXIF = b"Raw profile type exif\0"
_MAX_TEXT = 2 * MAX_METADATA


def read_png(data: bytes) -> Container:
    """Return a PNG of its critical chunks, its pixels in one."""
    head = [_SIGNATURE]
    pixels: list[bytes] = []
    frames: list[bytes] = []
    exif: bytes | None = None
    xmp = b""
    width = height = 0
    n_pages = 1
    position = len(_SIGNATURE)
    for _ in range(_MAX_CHUNKS):
        if position + 8 > len(data):
            break
        length, kind = _CHUNK.unpack_from(data, position)
        begin = position
        start = begin + 8
        end = start + length
        # A checksum follows.
        position = end + 4
        if kind == b"IDAT":
            pixels.append(data[start:end])
        elif kind == b"IEND":
            break
        elif kind in _HEADER:
            head.append(data[begin:position])
            if kind == b"IHDR":
                width, height, depth, color = struct.unpack_from(">IIBB", data, start)
                if width * height * depth * _CHANNELS.get(color, 1) > 8 * _MAX_BYTES:
                    raise ValueError(f"{width}×{height} pixels of {depth} bits are too many")
        elif kind in _ANIMATION:
            if kind == b"acTL":
                n_pages = max(1, number(data, start, 4))
            # Chunks of a frame that follow the pixels of the first stand behind them.
            (frames if pixels else head).append(data[begin:position])
        else:
            content = data[start : min(end, start + _MAX_TEXT)]
            # One chunk of EXIF data is looked at: unpacking very many would take long.
            exif = _exif(kind, content) if exif is None else exif
            if kind == b"iTXt" and content.startswith(_XMP):
                xmp = xmp or content
    else:
        raise ValueError(f"more than {_MAX_CHUNKS} chunks")
    parts = [*head, _chunk(b"IDAT", b"".join(pixels)), *frames]
    # Without an end the decoder sees that pixels are missing.
    is_whole = position <= len(data)
    if is_whole:
        parts.append(_chunk(b"IEND", b""))
    orientation = orientation_of(exif or b"", xmp)
    return Container("PNG", b"".join(parts), (width, height), orientation, n_pages)


def _exif(kind: bytes, content: bytes) -> bytes | None:
    """Return the EXIF data of a chunk, None for one of another kind."""
    if kind == b"eXIf":
        return content
    if kind not in (b"tEXt", b"zTXt") or not content.startswith(_RAW_EXIF):
        return None
    text = content[len(_RAW_EXIF) :]
    if kind == b"zTXt":
        text = zlib.decompressobj().decompress(text[1:], _MAX_TEXT)
    digits = b"".join(text.split(b"\n")[3:])
    return bytes.fromhex(digits.decode("ascii"))


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return _CHUNK.pack(len(content), kind) + content + checksum.to_bytes(4, "big")
