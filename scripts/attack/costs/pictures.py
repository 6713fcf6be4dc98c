"""Pictures of very many small segments, comments, blanks, frames or tags, and of absurd sides."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping

import numpy as np

from scripts.attack.costs.costly import Builder, Costly, repeated
from scripts.attack.images import image_seeds

__all__ = ["HEADER", "PICTURE"]

_PNG = b"\x89PNG\r\n\x1a\n"
_IEND = b"IEND"


def _saved(kind: str, side: tuple[int, int] = (8, 8), mode: str = "L") -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new(mode, side).save(file, kind)
    return file.getvalue()


def _segments(segment: bytes) -> Builder:
    """Repeat a segment behind the first marker of a JPEG."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        whole = _saved("jpeg")
        return whole[:2] + repeated(segment, size) + whole[2:]

    return build


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def _chunk(name: bytes, content: bytes) -> bytes:
    sums = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + sums


def _chunks(chunk: bytes) -> Builder:
    """Repeat a chunk behind the header of a PNG."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        whole = _saved("png")
        return whole[:33] + repeated(chunk, size) + whole[33:]

    return build


def _png(width: int, height: int, depth: int = 8, interlaced: int = 0) -> Builder:
    """A PNG of these sides, all zeros."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        head = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, interlaced)
        zeros = zlib.compress(bytes((-(-width * depth // 8) + 1) * height), 9)
        parts = _chunk(b"IHDR", head) + _chunk(b"IDAT", zeros) + _chunk(_IEND, b"")
        return _PNG + parts

    return build


def _unpacking(name: bytes, start: bytes) -> Builder:
    """A PNG whose notes unpack to a thousand times their size."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        note = _chunk(name, start + zlib.compress(bytes(1 << 20), 9))
        return _chunks(note)(size, rng)

    return build


def _text(start: bytes, part: bytes, end: bytes = b"1 1\n255\n0") -> Builder:
    """A PPM with much between its numbers."""
    return lambda size, rng: start + repeated(part, size) + end


def _gif(part: bytes) -> Builder:
    """A GIF with a block repeated before its picture."""

    def build(size: int, rng: np.random.Generator) -> bytes:
        whole = _saved("gif")
        start = 13 + 3 * 2 ** ((whole[10] & 7) + 1) * (whole[10] >> 7)
        return whole[:start] + repeated(part, size) + whole[start:]

    return build


def _frames(size: int, rng: np.random.Generator) -> bytes:
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0) + repeated(frame, size) + b";"


def _tags(size: int, rng: np.random.Generator) -> bytes:
    """A TIFF of 65,000 tags, each of which points to the whole file."""
    n = min(65_000, size // 12)
    entries = b"".join(
        struct.pack("<HHII", 256 + i, 7, size // 2, 8)
        if i > 50
        else struct.pack("<HHII", 256, 3, 1, 1)
        for i in range(n)
    )
    return (b"II*\0" + struct.pack("<IH", 8, n) + entries + bytes(4)).ljust(size, b"\0")


def _pages(size: int, rng: np.random.Generator) -> bytes:
    """A TIFF of very many pages, of one tag each."""
    n = max(1, size // 18)
    parts = [
        struct.pack("<HHHIII", 1, 256, 3, 1, 1, 8 + 18 * (i + 1) if i < n - 1 else 0)
        for i in range(n)
    ]
    return b"II*\0" + struct.pack("<I", 8) + b"".join(parts)


def _strips(size: int, rng: np.random.Generator) -> bytes:
    """A TIFF of a row in each of very many strips, all of which are the same bytes."""
    n = size // 8
    tags = [
        (256, 3, 1, 1), (257, 4, 1, n), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
        (273, 4, n, 200), (277, 3, 1, 1), (278, 4, 1, 1), (279, 4, n, 200 + 4 * n),
    ]  # fmt: skip
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    head = (b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)).ljust(200, b"\0")
    return head + struct.pack("<I", 8) * n + struct.pack("<I", 1) * n


def _scans(size: int, rng: np.random.Generator) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (512, 512)).save(file, "jpeg", progressive=True)
    whole = file.getvalue()
    last = whole.rindex(b"\xff\xda")
    return whole[:last] + repeated(whole[last:-2], size) + whole[-2:]


def _webp(size: int, rng: np.random.Generator) -> bytes:
    whole = _saved("webp", mode="RGB")
    parts = whole[12:] + repeated(b"JUNK" + bytes(4), size)
    return b"RIFF" + struct.pack("<I", len(parts) + 4) + b"WEBP" + parts


_BUILDERS: Mapping[str, Builder] = {
    "JPEG, Exif segments": _segments(_segment(0xE1, b"Exif\0\0")),
    "JPEG, Exif segments with a tag": _segments(
        _segment(0xE1, b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0")
    ),
    "JPEG, fill bytes": _segments(b"\xff"),
    "JPEG, empty APP5": _segments(_segment(0xE5, b"")),
    "JPEG, APP2 of ICC": _segments(_segment(0xE2, b"ICC_PROFILE\0\x01\xff")),
    "JPEG, APP13 of Photoshop": _segments(
        _segment(0xED, b"Photoshop 3.0\0" + b"8BIM\4\4\0\0\0\0\0\0")
    ),
    "JPEG, comments": _segments(_segment(0xFE, b"")),
    "JPEG, tables": _segments(_segment(0xDB, b"\0" + b"\1" * 64)),
    "JPEG, scans": _scans,
    "PNG, private chunks": _chunks(_chunk(b"prVt", b"")),
    "PNG, texts": _chunks(_chunk(b"tEXt", b"a\0b")),
    "PNG, packed texts": _unpacking(b"zTXt", b"a\0\0"),
    "PNG, profiles": _unpacking(b"iCCP", b"a\0\0"),
    "PNG, Exif": _chunks(_chunk(b"eXIf", b"II*\0\x08\0\0\0\0\0\0\0\0\0")),
    "PNG, empty IDAT": _chunks(_chunk(b"IDAT", b"")),
    "PNG, one column": _png(1, 1 << 25),
    "PNG, one row": _png(1 << 25, 1),
    "PNG, a column of bits": _png(1, 1 << 25, 1),
    "PNG, interlaced column": _png(1, 1 << 24, 8, 1),
    "PPM, comments": _text(b"P5\n", b"#\n"),
    "PPM, one comment": _text(b"P5\n#", b"a", b"\n1 1\n255\n0"),
    "PPM, blanks": _text(b"P5\n", b" "),
    "PPM, digits": _text(b"P5\n", b"0"),
    "PPM, plain": _text(b"P2\n2000 1300\n255\n", b"1 ", b""),
    "PPM, plain comments": _text(b"P2\n2000 1300\n255\n", b"#\n", b""),
    "PPM, plain blanks": _text(b"P2\n2000 1300\n255\n", b" ", b""),
    "GIF, comments": _gif(b"\x21\xfe\x00"),
    "GIF, comments of a byte": _gif(b"\x21\xfe\x01a\x00"),
    "GIF, controls": _gif(b"\x21\xf9\x04\0\0\0\0\0"),
    "GIF, frames": _frames,
    "TIFF, tags": _tags,
    "TIFF, pages": _pages,
    "TIFF, strips": _strips,
    "WebP, chunks": _webp,
}


def _decode(content: bytes) -> int:
    from visionshare.datasets import decode_image

    decode_image(io.BytesIO(content))
    return 0


def _read_header(content: bytes) -> int:
    from visionshare.datasets import picture_header

    picture_header(io.BytesIO(content))
    return 0


PICTURE = Costly(_BUILDERS, image_seeds, _decode)
HEADER = Costly(_BUILDERS, image_seeds, _read_header)
