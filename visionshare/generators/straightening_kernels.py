"""Shears that take the slant out of images."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["shear_rows", "slants"]


@njit(parallel=True, cache=True, nogil=True)
def slants(images: np.ndarray, slant: np.ndarray, middle: np.ndarray) -> None:
    """Write the slant of each image, in [−1, 1], and the row of its centre of mass.

    The slant is the slope of the columns' mean over the rows: Σ w (x − x̄)(y − ȳ) / Σ w (y − ȳ)².

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
        Negative values weigh nothing.
    slant, middle : ndarray of shape (n,), float64
        Written.
    """
    n, H, W, C = images.shape
    for i in prange(n):
        mass = first = second = across = both = 0.0
        for y in range(H):
            own = moment = 0.0
            for x in range(W):
                w = 0.0
                for c in range(C):
                    w += max(np.float64(images[i, y, x, c]), 0.0)
                own += w
                moment += w * x
            mass += own
            first += own * y
            second += own * y * y
            across += moment
            both += moment * y
        slant[i] = middle[i] = 0.0
        if mass > 0:
            middle[i] = first / mass
            spread = second - first * middle[i]
            # One row has no slant, whatever rounding makes of its spread.
            if spread > 1e-9 * second:
                slope = (both - across * middle[i]) / spread
                slant[i] = min(max(slope, -1.0), 1.0)


@njit(parallel=True, cache=True, nogil=True)
def shear_rows(
    images: np.ndarray, slant: np.ndarray, middle: np.ndarray, half: np.float32, out: np.ndarray
) -> None:
    """Write images whose rows are moved so that the slant goes; what comes in is 0.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
    slant, middle : ndarray of shape (n,), float64
        As :func:`slants` wrote them.
    half : float32
        0.5 for bytes, so that they are rounded to the nearest, halves up; 0 otherwise.
    out : ndarray like images
        Written.
    """
    n, H, W, C = images.shape
    for i in prange(n):
        for y in range(H):
            move = slant[i] * (y - middle[i])
            whole = np.floor(move)
            right = np.float32(move - whole)
            left = np.float32(1) - right
            start = int(whole)
            for x in range(W):
                a, b = x + start, x + start + 1
                for c in range(C):
                    value = half
                    if 0 <= a < W:
                        value += left * np.float32(images[i, y, a, c])
                    if 0 <= b < W:
                        value += right * np.float32(images[i, y, b, c])
                    out[i, y, x, c] = value
