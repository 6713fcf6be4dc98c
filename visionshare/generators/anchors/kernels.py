"""Kernels of anchors: vectors of inputs, distances, and what follows from them.

A distance is summed over the vector's numbers in their order, in float64, and an image's vector
over its inputs likewise. Whatever is asked for together, in whatever batches and on however many
threads, an example is inside a radius for all kernels or for none.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def vectors(
    X: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    mean: np.ndarray,
    projection: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write scaled and projected inputs."""
    # X: (n, p), float64
    # offset, scale, mean: (p,), float64
    # projection: (p, q), or (0, 0) for none, float64
    # out: (n, q), float32
    for i in range(X.shape[0]):
        if projection.shape[0] == 0:
            for d in range(X.shape[1]):
                out[i, d] = np.float32((X[i, d] - offset[d]) * scale[d])
        else:
            total = np.zeros(projection.shape[1], np.float64)
            for d in range(X.shape[1]):
                x = (X[i, d] - offset[d]) * scale[d] - mean[d]
                for j in range(total.shape[0]):
                    total[j] += x * projection[d, j]
            for j in range(total.shape[0]):
                out[i, j] = np.float32(total[j])


@njit(cache=True, nogil=True)
def _squares(v: np.ndarray, anchors: np.ndarray, out: np.ndarray) -> None:
    """Write the squared distances (A,) of one vector (q,) to anchors (q, A), float64."""
    out[:] = 0.0
    for t in range(v.shape[0]):
        x = np.float64(v[t])
        for a in range(out.shape[0]):
            difference = x - anchors[t, a]
            out[a] += difference * difference


@njit(cache=True, nogil=True)
def squared_distances(V: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Return the squared distances (n, A), float64, of V (n, q) to anchors (q, A)."""
    out = np.empty((V.shape[0], anchors.shape[1]), np.float64)
    for i in range(V.shape[0]):
        _squares(V[i], anchors, out[i])
    return out


@njit(cache=True, nogil=True)
def bins(V: np.ndarray, anchors: np.ndarray, limits: np.ndarray, out: np.ndarray) -> None:
    """Write how many of an anchor's radii do not hold an example."""
    # V: (n, q), float32
    # anchors: (q, A), float64
    # limits: (A, radii), float64
    # out: (A, n), uint8
    for i in range(V.shape[0]):
        square = np.empty(anchors.shape[1], np.float64)
        _squares(V[i], anchors, square)
        for a in range(square.shape[0]):
            # Halving: the number of limits at or below the distance.
            low = 0
            high = limits.shape[1]
            while low < high:
                middle = (low + high) // 2
                if limits[a, middle] <= square[a]:
                    low = middle + 1
                else:
                    high = middle
            out[a, i] = low


@njit(cache=True, nogil=True)
def piecewise_linear(
    V: np.ndarray,
    anchors: np.ndarray,
    pairs: np.ndarray,
    limits: np.ndarray,
    pair: np.ndarray,
    part: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write [v, 1] where an example is inside a radius, else zeros."""
    # V: (n, q), float32
    # anchors: (q, A), float64
    # pairs, limits: (P,), int64 and float64
    # pair, part: (n_features,), int32
    # out: (n, n_features), float32
    q = V.shape[1]
    for i in range(V.shape[0]):
        square = np.empty(anchors.shape[1], np.float64)
        _squares(V[i], anchors, square)
        for f in range(out.shape[1]):
            j = pair[f]
            inside = square[pairs[j]] < limits[j]
            value = V[i, part[f]] if part[f] < q else np.float32(1)
            out[i, f] = value if inside else np.float32(0)


@njit(cache=True, nogil=True)
def taper(square: float, limit: float) -> float:
    """Return max(0, 1 − square / limit); 1 without a limit."""
    return max(0.0, 1.0 - square / limit)


@njit(cache=True, nogil=True)
def tapered(
    V: np.ndarray,
    anchors: np.ndarray,
    pairs: np.ndarray,
    limits: np.ndarray,
    pair: np.ndarray,
    part: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write max(0, 1 − ‖v − anchor‖²/limit) · [v, 1]; parameters as in :func:`piecewise_linear`."""
    q = V.shape[1]
    for i in range(V.shape[0]):
        square = np.empty(anchors.shape[1], np.float64)
        _squares(V[i], anchors, square)
        weight = np.empty(pairs.shape[0], np.float64)
        for j in range(pairs.shape[0]):
            weight[j] = taper(square[pairs[j]], limits[j])
        for f in range(out.shape[1]):
            value = np.float64(V[i, part[f]]) if part[f] < q else 1.0
            out[i, f] = np.float32(weight[pair[f]] * value)


@njit(cache=True, nogil=True)
def gaussian(
    V: np.ndarray,
    anchors: np.ndarray,
    pairs: np.ndarray,
    widths: np.ndarray,
    pair: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write exp(−‖v − anchor‖² / 2σ²)."""
    # V: (n, q), float32
    # anchors: (q, A), float64
    # pairs, widths: (P,), int64 and float64
    # pair: (n_features,), int32
    # out: (n, n_features), float32
    for i in range(V.shape[0]):
        square = np.empty(anchors.shape[1], np.float64)
        _squares(V[i], anchors, square)
        for f in range(out.shape[1]):
            j = pair[f]
            out[i, f] = np.float32(math.exp(-square[pairs[j]] / widths[j]))
