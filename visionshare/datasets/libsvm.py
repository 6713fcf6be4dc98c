"""Images in LIBSVM's text format, plain, gzip or bzip2."""

from __future__ import annotations

import bz2
import gzip
import io
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets.bounds import Members, unpacked_limit
from visionshare.errors import DataError

__all__ = ["read_libsvm"]

_MAX_BYTES = 1 << 30


def read_libsvm(
    path: str | os.PathLike[str], shape: tuple[int, ...], max_bytes: int = _MAX_BYTES
) -> tuple[np.ndarray, np.ndarray]:
    """Read images and labels; values are not scaled."""
    from sklearn.datasets import load_svmlight_file

    path = Path(path)
    openers: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open}
    opener = openers.get(path.suffix)
    try:
        most = unpacked_limit(path.stat().st_size, max_bytes)
        with open(path, "rb") as file:
            text = (opener(Members(file)) if opener else file).read(most + 1)
        if len(text) > most:
            raise DataError(f"{path}: unpacks to more than {most} bytes")
        # Each line is an image, however little it says.
        pixels = math.prod(shape)
        n_bytes = 4 * pixels * (text.count(b"\n") + 1)
        if n_bytes > unpacked_limit(len(text), n_bytes):
            raise DataError(f"{path}: images of {n_bytes} bytes in a text of {len(text)}")
        table, labels = load_svmlight_file(
            io.BytesIO(text), n_features=pixels, dtype=np.float32, zero_based=False
        )
    except DataError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path}: invalid LIBSVM text of {shape} images ({error})") from None
    images = table.toarray().reshape(-1, *shape)
    if not np.isfinite(images).all() or len(images) == 0:
        raise DataError(f"{path}: no images, or values that are not finite")
    return images, np.asarray(labels, np.float64)
