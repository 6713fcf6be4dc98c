"""The kernel of local binary patterns: histograms of the codes in cells."""

from __future__ import annotations

import numpy as np
from numba import njit


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
    # Points are compared a row at a time: the loops over x run in vector instructions.
    longest = 0
    for k in range(len(cells)):
        longest = max(longest, cells[k, 3] - cells[k, 2])
    differences = np.empty(longest, np.float32)
    patterns = np.empty(longest, np.int32)
    for i in range(len(images)):
        gray = _gray(images[i])
        for k in range(len(cells)):
            left = cells[k, 2]
            width = cells[k, 3] - left
            counts = out[i, k]
            for y in range(cells[k, 0], cells[k, 1]):
                centers = gray[y, left : left + width]
                patterns[:width] = 0
                for p in range(len(starts) - 1):
                    differences[:width] = 0
                    # 1) the weighted difference of a point on the circle from each center
                    for t in range(starts[p], starts[p + 1]):
                        first = left + cols[t]
                        neighbors = gray[y + rows[t], first : first + width]
                        weight = weights[t]
                        for x in range(width):
                            differences[x] += weight * (neighbors[x] - centers[x])
                    # 2) its bit of each pattern
                    for x in range(width):
                        patterns[x] |= np.int32(differences[x] >= 0) << np.int32(p)
                # 3) count the codes
                for x in range(width):
                    counts[codes[patterns[x]]] += 1
