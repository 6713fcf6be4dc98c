"""Images in LIBSVM's text format, plain, gzip or bzip2."""

from __future__ import annotations

import io
import math
import os

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.readers.bounds import unpacked, unpacked_limit
from visionshare.errors import DataError

_MAX_BYTES = 1 << 30
# What a packed file may unpack to: bytes of any file, and for each of its bytes.
_FREE_TEXT, _PER_BYTE = 4 << 20, 4


def read_libsvm(
    path: str | os.PathLike[str], shape: tuple[int, ...], max_bytes: int = _MAX_BYTES
) -> tuple[np.ndarray, np.ndarray]:
    """Read images and labels; values are not scaled."""
    from sklearn.datasets import load_svmlight_file

    with file_errors(path, f"LIBSVM text of {shape} images"):
        # Text is slow to read: far less of it is accepted than of arrays.
        most = min(max_bytes, _FREE_TEXT + _PER_BYTE * os.stat(path).st_size)
        with unpacked(path, most) as (file, most):
            text = file.read(most + 1)
        if len(text) > most:
            raise DataError(f"{path}: unpacks to more than {most} bytes; unpack it beforehand")
        # Each line is an image, however little it says.
        n_pixels = math.prod(shape)
        n_bytes = 4 * n_pixels * (text.count(b"\n") + 1)
        if n_bytes > unpacked_limit(len(text), n_bytes):
            raise DataError(f"{path}: images of {n_bytes} bytes in a text of {len(text)}")
        table, labels = load_svmlight_file(
            io.BytesIO(text), n_features=n_pixels, dtype=np.float32, zero_based=False
        )
    images = table.toarray().reshape(-1, *shape)
    if not np.isfinite(images).all() or len(images) == 0:
        raise DataError(f"{path}: no images, or values that are not finite")
    return images, np.asarray(labels, np.float64)
