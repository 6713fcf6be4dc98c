"""What all kernels of patches share: units, margins, and the tables of chosen features."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.patches.tables import Tables


@njit(cache=True, nogil=True)
def pixel_unit(images: np.ndarray) -> np.float32:
    """Return what a pixel's value is multiplied with: bytes are read as 0 to 1."""
    return np.float32(1 / 255) if images.itemsize == 1 else np.float32(1)


@njit(cache=True, nogil=True)
def margin(side: int, positions: int, q: int) -> int:
    """Return the zero pixels on each end of a side that q × q patches have positions on."""
    return (positions + q - 1 - side) // 2


@njit(cache=True, nogil=True)
def _table(packed: np.ndarray, start: int, rows: int, columns: int) -> np.ndarray:
    return packed[start : start + rows * columns].reshape((rows, columns))


@njit(cache=True, nogil=True)
def unpacked(packed: np.ndarray) -> Tables:
    """Return the tables that :meth:`Tables.packed` put into one vector; nothing is copied."""
    n_strips = packed[0]
    n_windows = packed[1]
    n_features = packed[2]
    windows = 3 + n_strips * 3
    features = windows + n_windows * 7
    return Tables(
        _table(packed, 3, n_strips, 3),
        _table(packed, windows, n_windows, 7),
        _table(packed, features, n_features, 7),
    )
