"""IDX files, plain or gzip-compressed, as MNIST uses them."""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets.bounds import Members, unpacked_limit
from visionshare.errors import DataError
from visionshare.files.durable import write_bytes

__all__ = ["is_idx", "read_idx", "write_idx"]

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_BYTES = 8 << 30
# What an array of NumPy 1 may have.
_MOST_SIDES = 32


def is_idx(path: str | os.PathLike[str]) -> bool:
    """Return whether a name looks like an IDX file's."""
    name = Path(path).name.removesuffix(".gz")
    return name.endswith((".idx", "-ubyte", ".ubyte")) or "-idx" in name


def read_idx(path: str | os.PathLike[str], max_bytes: int = _MAX_BYTES) -> np.ndarray:
    """Read an IDX or IDX.gz file."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            # What gzip reads from is no file in name only.
            handle: Any = gzip.GzipFile(fileobj=Members(file)) if packed else file
            magic = handle.read(4)
            known = len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in _DTYPES
            if not known or not 0 < magic[3] <= _MOST_SIDES:
                raise DataError(f"{path}: not an IDX file (magic {magic.hex() or 'missing'})")
            sizes = handle.read(4 * magic[3])
            if len(sizes) < 4 * magic[3]:
                raise DataError(f"{path}: truncated in its header")
            shape = tuple(int(s) for s in np.frombuffer(sizes, ">u4"))
            dtype = np.dtype(_DTYPES[magic[2]])
            # An empty array must not have sides that no array has either.
            n_bytes = math.prod(side or 1 for side in shape) * dtype.itemsize
            most = unpacked_limit(path.stat().st_size, max_bytes)
            if n_bytes > most:
                raise DataError(f"{path}: announces {n_bytes} bytes, too many (at most {most})")
            return _body(path, handle, shape, dtype, math.prod(shape))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        raise DataError(f"{path}: the compressed data is truncated or broken") from None


def _body(
    path: Path, handle: io.BufferedIOBase, shape: tuple[int, ...], dtype: np.dtype, count: int
) -> np.ndarray:
    n_announced = count * dtype.itemsize
    parts, n_read = [], 0
    while n_read <= n_announced:
        # In parts, so that a header cannot make us allocate more than the file has.
        part = handle.read(min(1 << 24, n_announced + 1 - n_read))
        if not part:
            break
        parts.append(part)
        n_read += len(part)
    if n_read != n_announced:
        kind = "is truncated" if n_read < n_announced else "has bytes past its end"
        raise DataError(f"{path}: {kind} (shape {shape} announced)")
    array = np.frombuffer(b"".join(parts), dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=dtype.itemsize > 1)


def write_idx(path: str | os.PathLike[str], array: np.ndarray) -> None:
    """Write an array as IDX; gzip-compressed when the name ends in ``.gz``."""
    codes = {np.dtype(d).newbyteorder("="): code for code, d in _DTYPES.items()}
    code = codes.get(array.dtype.newbyteorder("="))
    if code is None:
        raise DataError(f"{path}: IDX has no {array.dtype}")
    head = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    body = head + array.astype(_DTYPES[code]).tobytes()
    content = gzip.compress(body, mtime=0) if str(path).endswith(".gz") else body
    write_bytes(path, content)
