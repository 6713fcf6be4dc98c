"""WebP: the pixels of a still picture or of the frames of a moving one, without metadata."""

from __future__ import annotations

from visionshare.datasets.containers.container import (
    MAX_METADATA,
    Container,
    number,
    orientation_of,
)

_MAX_CHUNKS = 1 << 16
# Bits of the header that announce a color profile, EXIF and XMP.
_METADATA = 0x20 | 0x08 | 0x04
_STILL = (b"VP8 ", b"VP8L")
_KEPT = (b"ALPH", b"ANIM", b"ANMF")


def read_webp(data: bytes) -> Container:
    """Return a WebP of its frames alone."""
    # The size of all frames is known before any memory is taken.
    size: tuple[int, int] | None = None
    kept: list[bytes] = []
    metadata = {b"EXIF": b"", b"XMP ": b""}
    n_frames = 0
    position = 12
    for _ in range(_MAX_CHUNKS):
        if position + 8 > len(data):
            break
        begin = position
        start = begin + 8
        kind = data[begin : begin + 4]
        length = number(data, begin + 4, 4, "little")
        position = start + length + length % 2
        if kind == b"VP8X":
            size = _side(data, start + 4, 3) + 1, _side(data, start + 7, 3) + 1
            flags = bytes([data[start] & ~_METADATA])
            kept.append(data[begin:start] + flags + data[start + 1 : position])
        elif kind in _STILL:
            size = size or _still_size(kind, data, start)
            n_frames += 1
            kept.append(data[begin:position])
            if len(kept) == 1:
                # The simple form has nothing else.
                break
        elif kind in _KEPT:
            n_frames += kind == b"ANMF"
            kept.append(data[begin:position])
        elif kind in metadata:
            content = data[start : min(position, start + MAX_METADATA)]
            metadata[kind] = metadata[kind] or content
    else:
        raise ValueError(f"more than {_MAX_CHUNKS} chunks")
    if size is None or n_frames == 0:
        raise ValueError("no pixels")
    body = b"WEBP" + b"".join(kept)
    file = b"RIFF" + len(body).to_bytes(4, "little") + body
    orientation = orientation_of(metadata[b"EXIF"], metadata[b"XMP "])
    return Container("WEBP", file, size, orientation, n_frames)


def _still_size(kind: bytes, data: bytes, start: int) -> tuple[int, int]:
    if kind == b"VP8L":
        packed = _side(data, start + 1, 4)
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    return _side(data, start + 6, 2) & 0x3FFF, _side(data, start + 8, 2) & 0x3FFF


def _side(data: bytes, start: int, size: int) -> int:
    return number(data, start, size, "little")
