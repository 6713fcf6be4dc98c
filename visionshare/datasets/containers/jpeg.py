"""JPEG: its tables, frame and scans, without metadata, comments and fill bytes."""

from __future__ import annotations

import re

from visionshare.datasets.containers.container import (
    Container,
    exif_orientation,
    xmp_orientation,
)

__all__ = ["MAX_SCANS", "read_jpeg"]

#: Scans that are accepted at most: each may take as long as the whole picture. Encoders write 10.
MAX_SCANS = 100
# Visits of a pixel by all scans together, at most: those of 2²⁶ pixels in 16 scans.
_MOST_VISITS = 1 << 30
_MOST_SEGMENTS = 10_000
_END, _SCAN = 0xD9, 0xDA
_EXIF, _ADOBE = 0xE1, 0xEE
# Markers that stand alone, without a length.
_ALONE = (0x01, 0xD8)
_FRAMES = (*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0))
_ARITHMETIC = range(0xC9, 0xD0)
# Tables of Huffman codes and quantization, restart intervals, JFIF.
_TABLES = (0xC4, 0xCC, 0xDB, 0xDD, 0xE0)
# A marker, other than those in the data of a scan: stuffed bytes and restarts.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
_FILL = re.compile(rb"\xff+(?=\xff)")
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


def read_jpeg(data: bytes, all_pages: bool = False) -> Container:
    """Return a JPEG without all that says nothing of its pixels."""
    kept = [b"\xff\xd8"]
    size, n_scans, visits = None, 0, 0
    exif = xmp = b""
    position = 2
    for _ in range(_MOST_SEGMENTS):
        match = _MARKER.search(data, position)
        if match is None:
            break
        marker, start = match[1][0], match.end()
        if marker == _END:
            kept.append(b"\xff\xd9")
            break
        if marker in _ALONE:
            position = start
            continue
        position = start + max(2, int.from_bytes(data[start : start + 2], "big"))
        segment = data[start:position]
        if marker in _FRAMES:
            if marker in _ARITHMETIC:
                raise ValueError("arithmetic coding; accepted: Huffman coding")
            size = int.from_bytes(segment[5:7], "big"), int.from_bytes(segment[3:5], "big")
        elif marker == _SCAN:
            following = _MARKER.search(data, position)
            end = len(data) if following is None else following.start()
            segment = data[start:end]
            if b"\xff\xff" in segment:
                segment = _FILL.sub(b"", segment)
            position = end
            n_scans += 1
            visits += 0 if size is None else size[0] * size[1]
        elif marker == _EXIF:
            content = data[start + 2 : position]
            exif = exif or (content if content.startswith(b"Exif\0\0") else b"")
            xmp = xmp or (content if content.startswith(_XMP) else b"")
            continue
        elif marker not in _TABLES and marker != _ADOBE:
            continue
        kept.append(b"\xff" + match[1] + segment)
    else:
        raise ValueError(f"more than {_MOST_SEGMENTS} segments")
    if size is None:
        raise ValueError("no frame")
    if n_scans > MAX_SCANS or (n_scans > 1 and visits > _MOST_VISITS):
        raise ValueError(f"{n_scans} scans are too many")
    orientation = exif_orientation(exif)
    if orientation == 1:
        orientation = xmp_orientation(xmp)
    return Container("JPEG", b"".join(kept), size, orientation)
