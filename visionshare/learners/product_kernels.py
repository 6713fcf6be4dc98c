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
        x, products = X[row], out[row]
        start = 0
        for i in range(n):
            for j in range(i, n):
                r = start + j - i
                products[r] = (x[i] * x[j] - offset[r]) * scale[r]
            start += n - i


@njit(cache=True, nogil=True, parallel=True)
def pair_gradients(X: np.ndarray, D: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Add to ``out`` (m, n) the gradient in X of Σ D · scale · x_i x_j, all arrays float32."""
    m, n = X.shape
    for row in prange(m):
        x, d, g = X[row], D[row], out[row]
        start = 0
        for i in range(n):
            own = np.float32(0)
            for j in range(i, n):
                r = start + j - i
                h = d[r] * scale[r]
                own += h * x[j]
                g[j] += h * x[i]
            g[i] += own
            start += n - i
