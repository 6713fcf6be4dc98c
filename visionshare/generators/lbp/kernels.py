"""The kernel of local binary patterns: histograms of the codes in cells."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["cell_histograms"]


@njit(cache=True, nogil=True)
def _gray(image: np.ndarray) -> np.ndarray:
    """Return the sum of the channels, (H, W) float32."""
    height, width, channels = image.shape
    gray = np.zeros((height, width), np.float32)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                gray[y, x] += np.float32(image[y, x, c])
    return gray


@njit(cache=True, nogil=True)
def cell_histograms(
    images: np.ndarray, rows: np.ndarray, cols: np.ndarray, weights: np.ndarray,
    starts: np.ndarray, codes: np.ndarray, cells: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Count the codes in each cell of every image."""
    # images: (n, H, W, C), uint8 or float32
    # codes: (2^points,), int64
    # cells: (n_cells, 4), int64
    # out: (n, n_cells, n_codes), int32
    for i in range(len(images)):
        gray = _gray(images[i])
        for k in range(len(cells)):
            for y in range(cells[k, 0], cells[k, 1]):
                for x in range(cells[k, 2], cells[k, 3]):
                    center = gray[y, x]
                    pattern = 0
                    for p in range(len(starts) - 1):
                        total = np.float32(0)
                        for t in range(starts[p], starts[p + 1]):
                            total += weights[t] * (gray[y + rows[t], x + cols[t]] - center)
                        if total >= 0:
                            pattern |= 1 << p
                    out[i, k, codes[pattern]] += 1
