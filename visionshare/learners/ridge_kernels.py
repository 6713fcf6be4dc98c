"""The whole forward selection over columns in memory, as one compiled loop.

A step is one product of the columns with a vector and one pass over two numbers a candidate. With
a dozen examples both take microseconds, less than a call from Python to either.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["select"]

_REFRESH = 1 / 16


@njit(cache=True, nogil=True)
def select(
    Z: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    root: np.ndarray,
    centred: np.ndarray,
    square: float,
    strength: float,
    tol: float,
    rounds: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what enters, its gains, the directions that G loses and Gy, a row a round.

    Parameters
    ----------
    Z : ndarray of shape (N, m), float32 or float64
        A candidate a row, as it is kept.
    offset, scale : ndarray of shape (N,), float64
        Scale is 0 for a candidate that may not enter.
    root : ndarray of shape (m,), float64
        Square roots of the examples' weights.
    centred : ndarray of shape (m,), float64
        root · (y − mean).
    square : float
        ‖root · z‖² of a scaled candidate.
    strength, tol : float
        λ and δ.
    rounds : int
        At most.
    """
    N, m = Z.shape
    scale = scale.copy()
    ids, gains = np.empty(rounds, np.int64), np.empty(rounds)
    U, Gys = np.empty((rounds, m)), np.empty((rounds, m))
    Gy = centred / strength
    whole = np.dot(centred, centred)
    # Of every candidate: zᵀGy, and what is left of zᵀGz besides 1.
    p, left = np.empty(N), np.full(N, 1 + square / strength)
    best = _refreshed(Z, offset, scale, root * Gy, p, left)
    error, refreshed = 1.0, 1.0
    for r in range(rounds):
        if best < 0:
            return ids[:r], gains[:r], U[:r], Gys[:r]
        gain = p[best] * p[best] / left[best]
        if not gain > 1e-12 * whole / strength:
            return ids[:r], gains[:r], U[:r], Gys[:r]
        ids[r], gains[r] = best, gain
        z = np.empty(m)
        for i in range(m):
            z[i] = (Z[best, i] - offset[best]) * scale[best] * root[i]
        scale[best] = 0.0
        p[best] = 0.0
        v = z / strength
        for i in range(r):
            v -= U[i] * np.dot(U[i], z)
        U[r] = v / np.sqrt(1 + np.dot(z, v))
        Gy = Gy - U[r] * np.dot(U[r], centred)
        Gys[r] = Gy
        before, error = error, strength * np.dot(centred, Gy) / whole
        if before - error < tol or r + 1 == rounds:
            return ids[: r + 1], gains[: r + 1], U[: r + 1], Gys[: r + 1]
        best = _stepped(Z, offset, scale, root * U[r], np.dot(U[r], centred), p, left)
        if error < _REFRESH * refreshed:
            # Differences of single-precision products lose digits as y is explained.
            best = _refreshed(Z, offset, scale, root * Gy, p, left)
            refreshed = error
    return ids, gains, U, Gys


@njit(cache=True, nogil=True)
def _stepped(
    Z: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    w: np.ndarray,
    share: float,
    p: np.ndarray,
    left: np.ndarray,
) -> int:
    """Take a direction of G out of every candidate's numbers; return the best, −1 for none."""
    total = w.sum()
    products = np.dot(Z, w.astype(Z.dtype))
    best, top, under = -1, 0.0, 1.0
    for i in range(len(p)):
        t = scale[i] * (products[i] - offset[i] * total)
        q = p[i] - share * t
        d = max(left[i] - t * t, 1.0)
        p[i], left[i] = q, d
        q *= q
        # q/d > top/under without a division.
        if q * under > top * d:
            best, top, under = i, q, d
    return best


@njit(cache=True, nogil=True)
def _refreshed(
    Z: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    w: np.ndarray,
    p: np.ndarray,
    left: np.ndarray,
) -> int:
    """Compute zᵀGy of every candidate; return the best, −1 for none."""
    total = w.sum()
    products = np.dot(Z, w.astype(Z.dtype))
    best, top, under = -1, 0.0, 1.0
    for i in range(len(p)):
        p[i] = scale[i] * (products[i] - offset[i] * total)
        q = p[i] * p[i]
        if q * under > top * left[i]:
            best, top, under = i, q, left[i]
    return best
