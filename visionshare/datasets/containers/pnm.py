"""PBM, PGM and PPM, plain or packed, and gray PFM: rewritten as the forms that decode fast."""

from __future__ import annotations

import re

import numpy as np

from visionshare.datasets.containers.container import Container

__all__ = ["read_pnm"]

_MOST_HEADER = 1 << 16
_MOST_COMMENTS = 10_000
_TOKEN = re.compile(rb"(?:\s|#[^\r\n]*[\r\n])*([-+.0-9eE]+)")
_COMMENT = re.compile(rb"#[^\r\n]*")
_BITS, _FLOATS = (b"P1", b"P4"), b"Pf"
_PLAIN, _COLOR = (b"P1", b"P2", b"P3"), (b"P3", b"P6")
_BYTE, _DEEP = 255, 65535
_MOST_PIXELS = 1 << 28


def read_pnm(data: bytes, all_pages: bool = False) -> Container:
    """Return a packed picture with values up to 255 or 65535 and no comments."""
    magic = data[:2]
    tokens: list[bytes] = []
    end = 2
    for _ in range(2 if magic in _BITS else 3):
        match = _TOKEN.match(data, end, _MOST_HEADER)
        if match is None:
            raise ValueError(f"no header in the first {_MOST_HEADER} bytes")
        tokens.append(match[1])
        end = match.end()
    width, height = int(tokens[0]), int(tokens[1])
    size = width, height
    # One blank stands between the header and the values.
    body = data[end + 1 :]
    if magic == _FLOATS:
        return Container("PPM", b"Pf %d %d\n%b\n" % (*size, tokens[2]) + body, size)
    if magic == b"P4":
        return Container("PPM", b"P4 %d %d\n" % size + body, size)
    if width < 1 or height < 1 or width * height > _MOST_PIXELS:
        # The limit of pixels says more.
        return Container("PPM", b"", size)
    if magic == b"P1":
        return Container("PPM", b"P4 %d %d\n" % size + _packed_bits(body, size), size)
    highest = int(tokens[2])
    if not 1 <= highest <= _DEEP:
        raise ValueError(f"values up to {highest}; accepted: up to 1 to {_DEEP}")
    n = width * height * (3 if magic in _COLOR else 1)
    kind = b"P6" if magic in _COLOR else b"P5"
    top = _DEEP if highest > _BYTE and kind == b"P5" else _BYTE
    if magic in _PLAIN or highest != top:
        values = _plain(body, n) if magic in _PLAIN else _packed(body, n, highest)
        if len(values) < n:
            raise ValueError(f"{len(values)} of {n} values")
        if magic in _PLAIN and (values.min() < 0 or values.max() > highest):
            raise ValueError(f"values outside of 0 to {highest}")
        # What each value becomes is computed once: a picture has many of the same.
        scaled = np.rint(np.arange(highest + 1) / highest * top)
        table = scaled.astype(">u2" if top == _DEEP else np.uint8)
        body = table[np.minimum(values, highest)].tobytes()
    return Container("PPM", b"%b %d %d %d\n" % (kind, *size, top) + body, size)


def _plain(body: bytes, n: int) -> np.ndarray:
    """Return numbers that stand as text; fewer where the text is none."""
    return np.fromstring(_without_comments(body), np.int32, n, sep=" ")


def _without_comments(body: bytes) -> bytes:
    if body.count(b"#") > _MOST_COMMENTS:
        raise ValueError(f"more than {_MOST_COMMENTS} comments")
    return _COMMENT.sub(b"", body)


def _packed(body: bytes, n: int, highest: int) -> np.ndarray:
    kind = np.dtype(np.uint8 if highest <= _BYTE else ">u2")
    return np.frombuffer(body, kind, min(n, len(body) // kind.itemsize))


def _packed_bits(body: bytes, size: tuple[int, int]) -> bytes:
    """Return the rows of a plain bitmap, eight pixels a byte."""
    width, height = size
    text = _without_comments(body)
    digits = text.translate(None, b" \t\n\r\v\f")[: width * height]
    bits = np.frombuffer(digits, np.uint8) - ord("0")
    if len(bits) < width * height or bits.max() > 1:
        raise ValueError(f"no {width * height} digits 0 or 1")
    return np.packbits(bits.reshape(height, width), axis=1).tobytes()
