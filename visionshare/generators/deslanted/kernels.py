"""Shears that take the slant out of images."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["deslant", "slant_of"]


@njit(cache=True, nogil=True)
def slant_of(image: np.ndarray) -> tuple[float, float]:
    """Return the slant of an image, in [−1, 1], and the row of its center of mass.

    The slant is the slope of the columns' mean over the rows: Σ w (x − x̄)(y − ȳ) / Σ w (y − ȳ)².
    """
    H, W, C = image.shape
    mass = first = second = across = both = 0.0
    for y in range(H):
        row = moment = 0.0
        for x in range(W):
            w = 0.0
            for c in range(C):
                w += max(np.float64(image[y, x, c]), 0.0)
            row += w
            moment += w * x
        mass += row
        first += row * y
        second += row * y * y
        across += moment
        both += moment * y
    if mass <= 0:
        return 0.0, 0.0
    middle = first / mass
    spread = second - first * middle
    # One row has no slant, whatever rounding makes of its spread.
    if spread <= 1e-9 * second:
        return 0.0, middle
    return min(max((both - across * middle) / spread, -1.0), 1.0), middle


@njit(cache=True, nogil=True)
def _deslant(image: np.ndarray, half: np.float32, out: np.ndarray) -> None:
    """Write an image whose rows are moved so that the slant goes; what comes in is 0."""
    H, W, C = image.shape
    slant, middle = slant_of(image)
    for y in range(H):
        move = slant * (y - middle)
        whole = np.floor(move)
        right = np.float32(move - whole)
        left = np.float32(1) - right
        start = int(whole)
        for x in range(W):
            a, b = x + start, x + start + 1
            for c in range(C):
                value = half
                if 0 <= a < W:
                    value += left * np.float32(image[y, a, c])
                if 0 <= b < W:
                    value += right * np.float32(image[y, b, c])
                out[y, x, c] = value


@njit(cache=True, nogil=True)
def deslant(images: np.ndarray, half: np.float32, out: np.ndarray) -> None:
    """Write deslanted images.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
        Negative values weigh nothing.
    half : float32
        0.5 for bytes, so that they are rounded to the nearest, halves up; 0 otherwise.
    out : ndarray like images
        Written.
    """
    for i in range(len(images)):
        _deslant(images[i], half, out[i])
