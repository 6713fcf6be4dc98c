"""Kernels of quadratic forms, one a class: all products of pairs of features are a form's terms."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["form_matrices", "pair_weights", "quadratic_forms", "quadratic_gradients"]


@njit(cache=True, nogil=True, parallel=True)
def form_matrices(Q: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Write the symmetric matrices of Σ_{i≤j} Q_ij s_ij x_i x_j.

    Parameters
    ----------
    Q : ndarray of shape (k, n(n+1)/2), float32
        In the order of ``np.triu_indices``.
    scale : ndarray of shape (n(n+1)/2,), float32
    out : ndarray of shape (k, n, n), float32
    """
    n = out.shape[1]
    for q in prange(Q.shape[0]):
        p = 0
        for i in range(n):
            out[q, i, i] = Q[q, p] * scale[p]
            p += 1
            for j in range(i + 1, n):
                half = np.float32(0.5) * Q[q, p] * scale[p]
                out[q, i, j] = half
                out[q, j, i] = half
                p += 1


@njit(cache=True, nogil=True, parallel=True)
def quadratic_forms(X: np.ndarray, A: np.ndarray, Y: np.ndarray, out: np.ndarray) -> None:
    """Write Y_q = X A_q and add x_iᵀ A_q x_i to ``out``.

    A class is one thread's, so that the bits do not depend on the number of threads.

    Parameters
    ----------
    X : ndarray of shape (m, n), float32
    A, Y : ndarray of shape (k, n, n) and (k, m, n), float32
    out : ndarray of shape (k, m), float32
    """
    for q in prange(A.shape[0]):
        np.dot(X, A[q], Y[q])
        for i in range(X.shape[0]):
            x, y, total = X[i], Y[q, i], np.float32(0)
            for j in range(x.shape[0]):
                total += x[j] * y[j]
            out[q, i] += total


@njit(cache=True, nogil=True, parallel=True)
def quadratic_gradients(
    X: np.ndarray, Y: np.ndarray, R: np.ndarray, G: np.ndarray, D: np.ndarray
) -> None:
    """Write the derivatives of Σ_q Σ_i R_qi x_iᵀ A_q x_i: D_q in A_q; add those in X to G.

    Parameters
    ----------
    X, G : ndarray of shape (m, n), float32
    Y : ndarray of shape (k, m, n), float32
        X A_q, as :func:`quadratic_forms` left it; used up.
    R : ndarray of shape (k, m), float32
    D : ndarray of shape (k, n, n), float32
    """
    for i in prange(X.shape[0]):
        for q in range(R.shape[0]):
            g, y, twice = G[i], Y[q, i], np.float32(2) * R[q, i]
            for j in range(g.shape[0]):
                g[j] += twice * y[j]
    for q in prange(R.shape[0]):
        weighted = Y[q]
        for i in range(X.shape[0]):
            x, y, r = X[i], weighted[i], R[q, i]
            for j in range(x.shape[0]):
                y[j] = r * x[j]
        np.dot(X.T, weighted, D[q])


@njit(cache=True, nogil=True, parallel=True)
def pair_weights(
    D: np.ndarray, scale: np.ndarray, offset: np.ndarray, total: np.ndarray, out: np.ndarray
) -> None:
    """Write the derivatives in Q: s_ij (D_qij − o_ij Σ_i R_qi).

    Parameters
    ----------
    D : ndarray of shape (k, n, n), float32
    scale, offset : ndarray of shape (n(n+1)/2,), float32
    total : ndarray of shape (k,), float32
    out : ndarray of shape (k, n(n+1)/2), float32
    """
    n = D.shape[1]
    for q in prange(D.shape[0]):
        p = 0
        for i in range(n):
            for j in range(i, n):
                out[q, p] = scale[p] * (D[q, i, j] - offset[p] * total[q])
                p += 1
