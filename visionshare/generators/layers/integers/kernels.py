"""Sums of layers of integers become bytes: rounded, and cut off.

Layers whose sums floats hold exactly are computed by the kernels of floats, and rounded here. The
bits are the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.layers.steps import kernel

#: A sum in one of the signed bytes that are squared, and the shift of its square.
LARGEST_ROOT = 127
SQUARE_SHIFT = 6


@njit(cache=True, nogil=True)
def rounded(total: int, shift: int) -> int:
    """Return a sum divided by 2^shift, to the nearest, halves up."""
    if shift > 0:
        return (total + (1 << (shift - 1))) >> shift
    return total


@kernel
def forward(
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    weights: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write sums, whole numbers that floats hold exactly, as bytes: shifted and cut off."""
    # Integers: how many sums have shifts of their own, and whether they are squared. Weights: what
    # is added before a shift, and what it multiplies with.
    n = ints[0]
    halves = weights[:n]
    factors = weights[n:]
    for first in range(0, x.shape[0], n):
        for t in range(n):
            value = np.floor((x[first + t] + halves[t]) * factors[t])
            if ints[1]:
                root = min(max(value, np.float32(-LARGEST_ROOT)), np.float32(LARGEST_ROOT))
                value = np.floor((root * root + np.float32(32)) * np.float32(1 / 64))
            out[first + t] = min(value, np.float32(255))
