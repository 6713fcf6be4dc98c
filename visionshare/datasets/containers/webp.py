"""WebP: the pixels of a still picture or of the frames of a moving one, without metadata."""

from __future__ import annotations

from visionshare.datasets.containers.container import (
    Container,
    exif_orientation,
    xmp_orientation,
)

__all__ = ["read_webp"]

_MOST_CHUNKS = 1 << 16
# Bits of the header that announce a color profile, EXIF and XMP.
_METADATA = 0x20 | 0x08 | 0x04
_STILL = (b"VP8 ", b"VP8L")
_MOST_METADATA = 1 << 16


def read_webp(data: bytes, all_pages: bool = False) -> Container:
    """Return a WebP of its first frame, or of all."""
    # Its size is known before any memory is taken.
    size: tuple[int, int] | None = None
    kept: list[bytes] = []
    n_frames, orientation = 0, 1
    position = 12
    for _ in range(_MOST_CHUNKS):
        if position + 8 > len(data):
            break
        kind = data[position : position + 4]
        start = position + 8
        length = int.from_bytes(data[start - 4 : start], "little")
        begin, position = position, start + length + length % 2
        if kind == b"VP8X":
            size = _number(data, start + 4, 3) + 1, _number(data, start + 7, 3) + 1
            flags = bytes([data[start] & ~_METADATA])
            kept.append(data[begin:start] + flags + data[start + 1 : position])
        elif kind in _STILL:
            size = size or _still_size(kind, data, start)
            n_frames += 1
            kept.append(data[begin:position])
            if len(kept) == 1:
                # The simple form has nothing else.
                break
        elif kind == b"ANMF":
            if n_frames == 0 or all_pages:
                kept.append(data[begin:position])
            n_frames += 1
        elif kind in (b"ALPH", b"ANIM"):
            kept.append(data[begin:position])
        elif kind in (b"EXIF", b"XMP ") and orientation == 1:
            read = exif_orientation if kind == b"EXIF" else xmp_orientation
            orientation = read(data[start : min(position, start + _MOST_METADATA)])
    else:
        raise ValueError(f"more than {_MOST_CHUNKS} chunks")
    if size is None or n_frames == 0:
        raise ValueError("no pixels")
    body = b"WEBP" + b"".join(kept)
    file = b"RIFF" + len(body).to_bytes(4, "little") + body
    return Container("WEBP", file, size, orientation, n_frames)


def _still_size(kind: bytes, data: bytes, start: int) -> tuple[int, int]:
    if kind == b"VP8L":
        packed = _number(data, start + 1, 4)
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    return _number(data, start + 6, 2) & 0x3FFF, _number(data, start + 8, 2) & 0x3FFF


def _number(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little")
