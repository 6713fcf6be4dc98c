"""Kernels of quadratic forms, one a class: all products of pairs of features are a form's terms."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.machine.resources import run_kernel


@njit(cache=True, nogil=True)
def _form_matrices(
    first: int, last: int, Q: np.ndarray, scale: np.ndarray, out: np.ndarray
) -> None:
    n = out.shape[1]
    for q in range(first, last):
        p = 0
        for i in range(n):
            out[q, i, i] = Q[q, p] * scale[p]
            p += 1
            for j in range(i + 1, n):
                half = np.float32(0.5) * Q[q, p] * scale[p]
                out[q, i, j] = half
                out[q, j, i] = half
                p += 1


def form_matrices(Q: np.ndarray, scale: np.ndarray, out: np.ndarray) -> None:
    """Write the symmetric matrices of Σ_{i≤j} Q_ij s_ij x_i x_j."""
    run_kernel(_form_matrices, len(Q), Q, scale, out)


@njit(cache=True, nogil=True)
def _quadratic_forms(
    first: int, last: int, X: np.ndarray, A: np.ndarray, Y: np.ndarray, out: np.ndarray
) -> None:
    for q in range(first, last):
        np.dot(X, A[q], Y[q])
        for i in range(X.shape[0]):
            x = X[i]
            y = Y[q, i]
            total = np.float32(0)
            for j in range(x.shape[0]):
                total += x[j] * y[j]
            out[q, i] += total


def quadratic_forms(X: np.ndarray, A: np.ndarray, Y: np.ndarray, out: np.ndarray) -> None:
    """Write Y_q = X A_q and add x_iᵀ A_q x_i to ``out``."""
    # A class is one thread's, so that the bits do not depend on the number of threads.
    run_kernel(_quadratic_forms, len(A), X, A, Y, out)


@njit(cache=True, nogil=True)
def _example_gradients(first: int, last: int, Y: np.ndarray, R: np.ndarray, G: np.ndarray) -> None:
    for i in range(first, last):
        for q in range(R.shape[0]):
            g = G[i]
            y = Y[q, i]
            twice = np.float32(2) * R[q, i]
            for j in range(g.shape[0]):
                g[j] += twice * y[j]


@njit(cache=True, nogil=True)
def _form_gradients(
    first: int, last: int, X: np.ndarray, Y: np.ndarray, R: np.ndarray, D: np.ndarray
) -> None:
    for q in range(first, last):
        weighted = Y[q]
        for i in range(X.shape[0]):
            x = X[i]
            y = weighted[i]
            r = R[q, i]
            for j in range(x.shape[0]):
                y[j] = r * x[j]
        np.dot(X.T, weighted, D[q])


def quadratic_gradients(
    X: np.ndarray, Y: np.ndarray, R: np.ndarray, G: np.ndarray, D: np.ndarray
) -> None:
    """Write the derivatives of Σ_q Σ_i R_qi x_iᵀ A_q x_i: D_q in A_q; add those in X to G."""
    run_kernel(_example_gradients, len(X), Y, R, G)
    # From here on Y is written over.
    run_kernel(_form_gradients, len(R), X, Y, R, D)


@njit(cache=True, nogil=True)
def _pair_weights(
    first: int,
    last: int,
    D: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
    total: np.ndarray,
    out: np.ndarray,
) -> None:
    n = D.shape[1]
    for q in range(first, last):
        p = 0
        for i in range(n):
            for j in range(i, n):
                out[q, p] = scale[p] * (D[q, i, j] - offset[p] * total[q])
                p += 1


def pair_weights(
    D: np.ndarray, scale: np.ndarray, offset: np.ndarray, total: np.ndarray, out: np.ndarray
) -> None:
    """Write the derivatives in Q: s_ij (D_qij − o_ij Σ_i R_qi)."""
    run_kernel(_pair_weights, len(D), D, scale, offset, total, out)
