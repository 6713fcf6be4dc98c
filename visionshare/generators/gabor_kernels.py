"""The kernel of Gabor features: a filter at all positions is one small matrix product a tile."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["TILE", "pooled_responses"]

# Images a product; always full, so that an image's bits do not depend on its neighbours.
TILE = 16


# Positions a product, about: few enough for the cache, enough for the matrix product.
_POSITIONS = 64


@njit(cache=True, nogil=True)
def _shifted(values: np.ndarray, ys: np.ndarray, xs: np.ndarray, top: int, bottom: int,
             height: int, width: int) -> np.ndarray:  # fmt: skip
    """Return a filter's values at the pixels of rows [top, bottom), a position a row."""
    out = np.empty((len(ys) * len(xs), (bottom - top) * width), np.float32)
    row = 0
    for y in ys:
        for x in xs:
            for v in range(top, bottom):
                source = values[v - y + height - 1]
                for u in range(width):
                    out[row, (v - top) * width + u] = source[u - x + width - 1]
            row += 1
    return out


@njit(cache=True, nogil=True)
def _pool(responses: np.ndarray, largest: bool, pooled: np.ndarray) -> None:
    for p in range(responses.shape[0]):
        for i in range(TILE):
            value, held = abs(responses[p, i]), pooled[i]
            if largest:
                pooled[i] = value if value > held else held
            else:
                pooled[i] = held + value


@njit(cache=True, nogil=True, parallel=True)
def pooled_responses(
    tiles: np.ndarray,
    filters: np.ndarray,
    reach: np.ndarray,
    height: int,
    width: int,
    ys: np.ndarray,
    xs: np.ndarray,
    largest: bool,
    out: np.ndarray,
) -> None:
    """Write the pooled absolute responses of every filter to every image.

    Parameters
    ----------
    tiles : ndarray of shape (n_tiles, H·W, 16), float32
        Images, an image a column.
    filters : ndarray of shape (n_filters, 2H − 1, 2W − 1), float32
        Each filter's values at all offsets from its centre.
    reach : ndarray of shape (n_filters,), int64
        Pixels from the centre beyond which a filter is zero.
    height, width : int
    ys, xs : ndarray of int64
        Rows and columns of the positions.
    largest : bool
        Whether to take the largest absolute response; their sum otherwise.
    out : ndarray of shape (n_filters, n_tiles, 16), float32
    """
    together = max(1, _POSITIONS // len(xs))
    for f in prange(filters.shape[0]):
        responses = np.empty((together * len(xs), TILE), np.float32)
        out[f] = np.float32(0)
        for c in range(0, len(ys), together):
            rows = ys[c : c + together]
            top, bottom = max(0, rows[0] - reach[f]), min(height, rows[-1] + reach[f] + 1)
            shifted = _shifted(filters[f], rows, xs, top, bottom, height, width)
            found = responses[: len(shifted)]
            for t in range(tiles.shape[0]):
                np.dot(shifted, tiles[t, top * width : bottom * width], found)
                _pool(found, largest, out[f, t])
