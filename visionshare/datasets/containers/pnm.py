"""PBM, PGM and PPM, plain or packed, and gray PFM: rewritten as the forms that decode fast."""

from __future__ import annotations

import re

import numpy as np

from visionshare.datasets.containers.container import Container

_MAX_HEADER = 1 << 16
_MAX_COMMENTS = 10_000
_MAX_PIXELS = 1 << 28
_TOKEN = re.compile(rb"(?:\s|#[^\r\n]*[\r\n])*([-+.0-9eE]+)")
_COMMENT = re.compile(rb"#[^\r\n]*")
_BYTE = 255
_DEEP = 65535


def read_pnm(data: bytes) -> Container:
    """Return a packed picture with values up to 255 or 65535 and no comments."""
    # 1) the header: width, height, and the highest value of all but bitmaps
    magic = data[:2]
    is_bitmap = magic in (b"P1", b"P4")
    tokens: list[bytes] = []
    end = 2
    for _ in range(2 if is_bitmap else 3):
        match = _TOKEN.match(data, end, _MAX_HEADER)
        if match is None:
            raise ValueError(f"no header in the first {_MAX_HEADER} bytes")
        tokens.append(match[1])
        end = match.end()
    width = int(tokens[0])
    height = int(tokens[1])
    # One blank stands between the header and the values.
    body = data[end + 1 :]
    # 2) the values
    if magic == b"Pf":
        header = b"Pf %d %d\n%b\n" % (width, height, tokens[2])
    elif width < 1 or height < 1 or width * height > _MAX_PIXELS:
        # The limit of pixels says more.
        header = body = b""
    elif is_bitmap:
        header = b"P4 %d %d\n" % (width, height)
        if magic == b"P1":
            body = _packed_bits(body, width, height)
    else:
        has_color = magic in (b"P3", b"P6")
        top, body = _scaled(magic, body, width * height * (3 if has_color else 1), int(tokens[2]))
        header = b"%b %d %d %d\n" % (b"P6" if has_color else b"P5", width, height, top)
    return Container("PPM", header + body, (width, height))


def _scaled(magic: bytes, body: bytes, n: int, highest: int) -> tuple[int, bytes]:
    """Return the highest value of packed numbers, 255 or 65535, and these numbers."""
    if not 1 <= highest <= _DEEP:
        raise ValueError(f"values up to {highest}; accepted: up to 1 to {_DEEP}")
    top = _DEEP if highest > _BYTE and magic in (b"P2", b"P5") else _BYTE
    if magic in (b"P2", b"P3"):
        values = np.fromstring(_without_comments(body), np.int32, n, sep=" ")
        if len(values) and (values.min() < 0 or values.max() > highest):
            raise ValueError(f"values outside of 0 to {highest}")
    elif highest == top:
        return top, body
    else:
        kind = np.dtype(np.uint8 if highest <= _BYTE else ">u2")
        values = np.frombuffer(body, kind, min(n, len(body) // kind.itemsize))
    if len(values) < n:
        raise ValueError(f"{len(values)} of {n} values")
    # What each value becomes is computed once: a picture has many of the same.
    table = np.rint(np.arange(highest + 1) / highest * top)
    table = table.astype(">u2" if top == _DEEP else np.uint8)
    return top, table[np.minimum(values, highest)].tobytes()


def _packed_bits(body: bytes, width: int, height: int) -> bytes:
    """Return the rows of a plain bitmap, eight pixels a byte."""
    digits = _without_comments(body).translate(None, b" \t\n\r\v\f")[: width * height]
    bits = np.frombuffer(digits, np.uint8) - ord("0")
    if len(bits) < width * height or bits.max() > 1:
        raise ValueError(f"no {width * height} digits 0 or 1")
    return np.packbits(bits.reshape(height, width), axis=1).tobytes()


def _without_comments(body: bytes) -> bytes:
    if body.count(b"#") > _MAX_COMMENTS:
        raise ValueError(f"more than {_MAX_COMMENTS} comments")
    return _COMMENT.sub(b"", body)
