"""Kernels of Gabor filters that move: gradients of features in the filters' values."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.gabor.kernels import shifted_values

# Positions per product, about: as many as fit the cache.
_POSITIONS = 64


@njit(cache=True, nogil=True)
def _keep_largest(responses: np.ndarray, first: int, best: np.ndarray, where: np.ndarray) -> None:
    """Take on larger absolute responses, with their signs, and the positions where they are."""
    for p in range(responses.shape[0]):
        for i in range(responses.shape[1]):
            if abs(responses[p, i]) > abs(best[i]):
                best[i] = responses[p, i]
                where[i] = first + p


@njit(cache=True, nogil=True)
def _add_windows(
    images: np.ndarray, best: np.ndarray, where: np.ndarray, G: np.ndarray, reach: int,
    ys: np.ndarray, xs: np.ndarray, width: int, out: np.ndarray,
) -> None:  # fmt: skip
    """Add each image around the position of its largest response, with the response's sign."""
    height = images.shape[0] // width
    for i in range(images.shape[1]):
        if best[i] == 0:
            continue
        g = G[i] if best[i] > 0 else -G[i]
        y = ys[where[i] // len(xs)]
        x = xs[where[i] % len(xs)]
        for v in range(max(0, y - reach), min(height, y + reach + 1)):
            for u in range(max(0, x - reach), min(width, x + reach + 1)):
                out[v - y + height - 1, u - x + width - 1] += g * images[v * width + u, i]


@njit(cache=True, nogil=True)
def _add_shifted(
    gradients: np.ndarray, ys: np.ndarray, xs: np.ndarray, top: int, height: int, width: int,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Add gradients in a filter's values at the pixels of some rows, a position a row."""
    row = 0
    lines = gradients.shape[1] // width
    for y in ys:
        for x in xs:
            for v in range(lines):
                target = out[top + v - y + height - 1]
                for u in range(width):
                    target[u - x + width - 1] += gradients[row, v * width + u]
            row += 1


@njit(cache=True, nogil=True)
def value_gradients(
    images: np.ndarray,
    filters: np.ndarray,
    reach: np.ndarray,
    height: int,
    width: int,
    ys: np.ndarray,
    xs: np.ndarray,
    largest: bool,
    G: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the gradients of Σ_if G_if x_if in the filters' values."""
    # At offsets within their reach. The derivative of an absolute response is its sign, 0 where
    # it is 0; that of a maximum is that of the first of the largest responses.
    # images: (H·W, n), float32
    # filters: (n_filters, 2H − 1, 2W − 1), float32
    # reach: (n_filters,), int64
    # G: (n_filters, n), float32
    # out: (n_filters, 2H − 1, 2W − 1), float64
    n = images.shape[1]
    together = max(1, _POSITIONS // len(xs))
    for f in range(len(filters)):
        best = np.zeros(n, np.float32)
        where = np.zeros(n, np.int64)
        for c in range(0, len(ys), together):
            rows = ys[c : c + together]
            top = max(0, rows[0] - reach[f])
            bottom = min(height, rows[-1] + reach[f] + 1)
            band = images[top * width : bottom * width]
            products = np.dot(
                shifted_values(filters[f], rows, xs, top, bottom, height, width), band
            )
            if largest:
                _keep_largest(products, c * len(xs), best, where)
                continue
            for p in range(len(products)):
                for i in range(n):
                    response = products[p, i]
                    g = G[f, i]
                    products[p, i] = g if response > 0 else -g if response < 0 else np.float32(0)
            _add_shifted(np.dot(products, band.T), rows, xs, top, height, width, out[f])
        if largest:
            _add_windows(images, best, where, G[f], reach[f], ys, xs, width, out[f])
