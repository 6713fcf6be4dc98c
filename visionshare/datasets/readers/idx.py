"""IDX files, plain or gzip-compressed, as MNIST uses them."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.readers.bounds import unpacked
from visionshare.errors import DataError

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_BYTES = 8 << 30
# What an array of NumPy 1 may have.
_MAX_SIDES = 32
_PART = 1 << 24


def is_idx(path: str | os.PathLike[str]) -> bool:
    """Return whether a name looks like an IDX file's."""
    name = Path(path).name.removesuffix(".gz")
    return name.endswith((".idx", "-ubyte", ".ubyte")) or "-idx" in name


def labels_beside(path: Path) -> Path:
    """Return the file of the labels of a file of images."""
    return path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))


def read_idx(path: str | os.PathLike[str], max_bytes: int = _MAX_BYTES) -> np.ndarray:
    """Read an IDX or IDX.gz file."""
    with file_errors(path, "IDX"), unpacked(path, max_bytes) as (file, most):
        # 1) the header: a type and a number of sides, then the sides
        magic = file.read(4)
        is_known = len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in _DTYPES
        if not is_known or not 0 < magic[3] <= _MAX_SIDES:
            raise DataError(f"{path}: not an IDX file (magic {magic.hex() or 'missing'})")
        sides = file.read(4 * magic[3])
        if len(sides) < 4 * magic[3]:
            raise DataError(f"{path}: truncated in its header")
        shape = tuple(np.frombuffer(sides, ">u4").tolist())
        dtype = np.dtype(_DTYPES[magic[2]])
        # An empty array must not have sides that no array has either.
        n_bytes = math.prod(side or 1 for side in shape) * dtype.itemsize
        if n_bytes > most:
            raise DataError(f"{path}: announces {n_bytes} bytes, too many (at most {most})")
        # 2) the values, in parts: a header cannot make us allocate more than the file has
        n_bytes = math.prod(shape) * dtype.itemsize
        content = bytearray()
        while len(content) <= n_bytes:
            part = file.read(min(_PART, n_bytes + 1 - len(content)))
            if not part:
                break
            content += part
    if len(content) != n_bytes:
        problem = "is truncated" if len(content) < n_bytes else "has bytes past its end"
        raise DataError(f"{path}: {problem} (shape {shape} announced)")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
