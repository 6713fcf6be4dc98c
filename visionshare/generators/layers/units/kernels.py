"""Weighted sums of all values of an image, for chains of layers."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed

__all__ = ["units_forward"]


@njit(cache=True, nogil=True)
def units_forward(
    x: np.ndarray, unit: np.float32, ints: np.ndarray, floats: np.ndarray, out: np.ndarray
) -> None:
    """Write activations of weighted sums."""
    # out: (n,), float32
    x = borrowed(x)
    floats = borrowed(floats)
    out = borrowed(out)
    n_inputs = ints[0]
    n = ints[1]
    lanes = ints[2]
    activation = ints[3]
    sums = np.empty(lanes, np.float32)
    for j in range(lanes):
        sums[j] = floats[j]
    for i in range(n_inputs):
        value = x[i] * unit
        # Many maxima are 0.
        if value != 0:
            weights = floats[(i + 1) * lanes : (i + 2) * lanes]
            for j in range(lanes):
                sums[j] += value * weights[j]
    for j in range(n):
        total = sums[j]
        if activation == 0:
            total = total if total > 0 else np.float32(0)
        elif activation == 1:
            total = total * total
        out[j] = total
