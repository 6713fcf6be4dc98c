"""Kernels of the products of all pairs of a few features."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["pair_gradients", "pair_products"]


@njit(cache=True, nogil=True, parallel=True)
def pair_products(X: np.ndarray, offset: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Write (x_i x_j − offset) · scale for all i ≤ j, in the order of ``np.triu_indices``.

    Parameters
    ----------
    X : ndarray of shape (m, n), float32
    offset, scale : ndarray of shape (n(n+1)/2,), float32
    out : ndarray of shape (m, n(n+1)/2), float32
    """
    m, n = X.shape
    for row in prange(m):
        x, start = X[row], 0
        for i in range(n):
            # Slices that begin at 0 are what a compiler turns into vectors.
            size, others = n - i, x[i:]
            products = out[row, start : start + size]
            o, s = offset[start : start + size], scale[start : start + size]
            for j in range(size):
                products[j] = (x[i] * others[j] - o[j]) * s[j]
            start += size


@njit(cache=True, nogil=True, parallel=True)
def pair_gradients(X: np.ndarray, D: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Add to ``out`` (m, n) the gradient in X of Σ D · scale · x_i x_j, all arrays float32."""
    m, n = X.shape
    for row in prange(m):
        x, g, start = X[row], out[row], 0
        for i in range(n):
            size, others, moved = n - i, x[i:], g[i:]
            d, s = D[row, start : start + size], scale[start : start + size]
            own = np.float32(0)
            for j in range(size):
                h = d[j] * s[j]
                own += h * others[j]
                moved[j] += h * x[i]
            g[i] += own
            start += size
