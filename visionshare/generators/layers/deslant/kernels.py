"""The shear that takes the slant out of an image."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.steps import kernel


@njit(cache=True, nogil=True)
def slant_of(image: np.ndarray) -> tuple[float, float]:
    """Return the slant of an image, in [−1, 1], and the row of its center of mass."""
    # The slant is the slope of the columns' mean over the rows: Σ w (x − x̄)(y − ȳ) / Σ w (y −
    # ȳ)².
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
    """Write an image whose rows are moved so that its slant goes; what moves in is 0."""
    # Bytes are rounded to the nearest.
    half = np.float32(0 if unit == 1 else 0.5)
    H = ints[0]
    W = ints[1]
    C = ints[2]
    slant, middle = slant_of(x.reshape((H, W, C)))
    for y in range(H):
        move = slant * (y - middle)
        whole = np.floor(move)
        right = np.float32(move - whole)
        shear_row(x[y * W * C :], int(whole) * C, C, right, half, out[y * W * C : (y + 1) * W * C])


@njit(cache=True, nogil=True)
def shear_row(
    values: np.ndarray, start: int, step: int, right: np.float32, half: np.float32, out: np.ndarray
) -> None:
    """Write a row moved by ``start`` values and a part of a pixel of ``step`` values."""
    values = uncounted(values)
    out = uncounted(out)
    size = out.shape[0]
    left = np.float32(1) - right
    # Where both pixels are inside, values are computed in vectors.
    first = min(size, max(0, -start))
    last = max(first, min(size, size - start - step))
    for k in range(size):
        if first <= k < last:
            continue
        value = half
        if 0 <= k + start < size:
            value += left * values[k + start]
        if 0 <= k + start + step < size:
            value += right * values[k + start + step]
        out[k] = np.floor(value) if half > 0 else value
    if first == last:
        return
    to = out[first:last]
    one = values[first + start :]
    two = values[first + start + step :]
    for k in range(to.shape[0]):
        value = (half + left * one[k]) + right * two[k]
        to[k] = np.floor(value) if half > 0 else value
