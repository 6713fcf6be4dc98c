"""The kernel of Gabor features: a filter at all positions is one small matrix product a tile."""

from __future__ import annotations

import numpy as np
from numba import njit

# Images per product; always full, so that an image's bits do not depend on its neighbors.
TILE = 16


# Positions per product, about: few enough for the cache, enough for the matrix product.
_POSITIONS = 64


@njit(cache=True, nogil=True)
def shifted_values(
    values: np.ndarray, ys: np.ndarray, xs: np.ndarray, top: int, bottom: int, height: int,
    width: int,
) -> np.ndarray:  # fmt: skip
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
            value = abs(responses[p, i])
            before = pooled[i]
            if largest:
                pooled[i] = value if value > before else before
            else:
                pooled[i] = before + value


@njit(cache=True, nogil=True)
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
    """Write the pooled absolute responses of every filter to every image."""
    # tiles: (n_tiles, H·W, 16), float32
    # filters: (n_filters, 2H − 1, 2W − 1), float32
    # reach: (n_filters,), int64
    # out: (n_filters, n_tiles, 16), float32
    together = max(1, _POSITIONS // len(xs))
    for f in range(filters.shape[0]):
        responses = np.empty((together * len(xs), TILE), np.float32)
        out[f] = np.float32(0)
        for c in range(0, len(ys), together):
            rows = ys[c : c + together]
            top = max(0, rows[0] - reach[f])
            bottom = min(height, rows[-1] + reach[f] + 1)
            shifted = shifted_values(filters[f], rows, xs, top, bottom, height, width)
            products = responses[: len(shifted)]
            for t in range(tiles.shape[0]):
                np.dot(shifted, tiles[t, top * width : bottom * width], products)
                _pool(products, largest, out[f, t])


@njit(cache=True, nogil=True)
def _response_row(
    image: np.ndarray, taps: np.ndarray, reach: int, y: int, first: int, out: np.ndarray
) -> None:
    """Write the absolute responses at row y, columns first to first + len(out)."""
    n = len(out)
    out[:] = np.float32(0)
    for v in range(2 * reach + 1):
        row = image[y - reach + v]
        for u in range(2 * reach + 1):
            tap = taps[v, u]
            source = row[first - reach + u : first - reach + u + n]
            for x in range(n):
                out[x] += tap * source[x]
    for x in range(n):
        out[x] = abs(out[x])


@njit(cache=True, nogil=True)
def _gather(values: np.ndarray, largest: bool, out: np.ndarray) -> None:
    """Pool values into out, both of one length."""
    if largest:
        for x in range(len(out)):
            out[x] = max(out[x], values[x])
    else:
        for x in range(len(out)):
            out[x] += values[x]


@njit(cache=True, nogil=True)
def shared_responses(
    image: np.ndarray,
    filters: np.ndarray,
    reach: np.ndarray,
    rows: np.ndarray,
    cols: np.ndarray,
    corner: tuple[int, int],
    strides: tuple[int, int],
    largest: bool,
    out: np.ndarray,
) -> None:
    """Write the pooled absolute responses of every filter in every window of an image."""
    # Sums go over a row's positions first, then over rows, always in the same order: a window's
    # bits do not depend on which other windows are asked for.
    # image: (height, width), float32
    # filters: (n, 2H − 1, 2W − 1), float32
    # reach: (n,), int64
    # out: (n, window rows, window columns), float32
    middle_y = filters.shape[1] // 2
    middle_x = filters.shape[2] // 2
    height = out.shape[1]
    width = out.shape[2]
    lines = (height - 1) * strides[0] + rows[-1] + 1
    needed = np.zeros(lines, np.bool_)
    for i in range(height):
        for y in rows:
            needed[i * strides[0] + y] = True
    across = (width - 1) * strides[1] + cols[-1] - cols[0] + 1
    for f in range(filters.shape[0]):
        r = reach[f]
        taps = filters[f, middle_y - r : middle_y + r + 1, middle_x - r : middle_x + r + 1]
        responses = np.empty(across, np.float32)
        pooled = np.zeros((lines, width), np.float32)
        for line in range(lines):
            if needed[line]:
                _response_row(image, taps, r, corner[0] + line, corner[1] + cols[0], responses)
                for x in cols:
                    first = x - cols[0]
                    if strides[1] == 1:
                        _gather(responses[first : first + width], largest, pooled[line])
                    else:
                        _gather(responses[first :: strides[1]], largest, pooled[line])
        for i in range(height):
            out[f, i] = np.float32(0)
            for y in rows:
                _gather(pooled[i * strides[0] + y], largest, out[f, i])
