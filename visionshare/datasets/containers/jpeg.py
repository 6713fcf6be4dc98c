"""JPEG: its tables, frame and scans, without metadata, comments and fill bytes."""

from __future__ import annotations

import re

from visionshare.datasets.containers.container import Container, number, orientation_of

#: Scans that are accepted at most: each may take as long as the whole picture. Encoders write 10.
MAX_SCANS = 100
# Visits of pixels by all scans together, at most: 2²⁶ pixels in 16 scans.
_MAX_VISITS = 1 << 30
_MAX_SEGMENTS = 10_000
_END = 0xD9
_SCAN = 0xDA
_APP1 = 0xE1
# Markers that stand alone, without a length.
_ALONE = (0x01, 0xD8)
_HUFFMAN_FRAMES = (*range(0xC0, 0xC4), *range(0xC5, 0xC8))
_ARITHMETIC_FRAMES = (*range(0xC9, 0xCC), *range(0xCD, 0xD0))
# Tables of Huffman codes and quantization, restart intervals, JFIF, and Adobe's kind of colors.
_TABLES = (0xC4, 0xCC, 0xDB, 0xDD, 0xE0, 0xEE)
# A marker, other than those in the data of a scan: stuffed bytes and restarts.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
_FILL = re.compile(rb"\xff+(?=\xff)")
_EXIF = b"Exif\0\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"


def read_jpeg(data: bytes) -> Container:
    """Return a JPEG of the segments that pixels need."""
    kept = [b"\xff\xd8"]
    size = None
    n_scans = visits = 0
    exif = xmp = b""
    position = 2
    for _ in range(_MAX_SEGMENTS):
        match = _MARKER.search(data, position)
        if match is None:
            break
        marker = match[1][0]
        start = match.end()
        if marker == _END:
            kept.append(b"\xff\xd9")
            break
        if marker in _ALONE:
            position = start
            continue
        position = start + max(2, number(data, start, 2))
        segment = data[start:position]
        if marker == _SCAN:
            # The data of a scan ends at the next marker.
            following = _MARKER.search(data, position)
            position = len(data) if following is None else following.start()
            segment = data[start:position]
            if b"\xff\xff" in segment:
                segment = _FILL.sub(b"", segment)
            n_scans += 1
            visits += 0 if size is None else size[0] * size[1]
        elif marker in _HUFFMAN_FRAMES:
            size = number(segment, 5, 2), number(segment, 3, 2)
        elif marker in _ARITHMETIC_FRAMES:
            raise ValueError("arithmetic coding; accepted: Huffman coding")
        elif marker == _APP1:
            if segment.startswith(_EXIF, 2):
                exif = exif or segment[2:]
            elif segment.startswith(_XMP, 2):
                xmp = xmp or segment[2:]
            continue
        elif marker not in _TABLES:
            continue
        kept.append(b"\xff" + match[1] + segment)
    else:
        raise ValueError(f"more than {_MAX_SEGMENTS} segments")
    if size is None:
        raise ValueError("no frame")
    if n_scans > MAX_SCANS or (n_scans > 1 and visits > _MAX_VISITS):
        raise ValueError(f"{n_scans} scans are too many")
    return Container("JPEG", b"".join(kept), size, orientation_of(exif, xmp))
