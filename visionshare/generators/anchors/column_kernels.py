"""Kernels of columns that are zero outside a ball: sums over rings, one anchor after the other.

An anchor's radii cut the examples into rings, and a column is [v, 1] over the rings inside its
radius. A sum over every column of an anchor is then a sum over each ring, added up from the
innermost: what one radius costs, all of them cost. Columns that fade to 0 at the radius are
(1 − ‖v − a‖²/r²) · [v, 1] there: the sums of [v, 1] and of ‖v − a‖² · [v, 1] make those of all
radii. An anchor is one thread's, in an order of its examples, so that its result depends on nothing
else: private kernels compute the anchors, or columns, from ``first`` to ``last``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.anchors.kernels import taper
from visionshare.machine.resources import run_kernel

_ROWS = 256


@njit(cache=True, nogil=True)
def _sorted_by_ring(rings: np.ndarray, n_radii: int) -> tuple[np.ndarray, np.ndarray]:
    """Return examples by ring, and where each ring begins; examples outside all come last."""
    starts = np.zeros(n_radii + 2, np.int64)
    for i in range(rings.shape[0]):
        starts[rings[i] + 1] += 1
    for b in range(n_radii + 1):
        starts[b + 1] += starts[b]
    order = np.empty(rings.shape[0], np.int32)
    free = starts.copy()
    for i in range(rings.shape[0]):
        b = rings[i]
        order[free[b]] = i
        free[b] += 1
    return order, starts


@njit(cache=True, nogil=True)
def _gather(V: np.ndarray, R: np.ndarray, rows: np.ndarray, v: np.ndarray, r: np.ndarray) -> None:
    """Write some examples' [v, 1] and residuals one after the other, from the first row on."""
    for j in range(rows.shape[0]):
        for t in range(V.shape[1]):
            v[j, t] = V[rows[j], t]
        for c in range(R.shape[1]):
            r[j, c] = R[rows[j], c]


@njit(cache=True, nogil=True)
def _ball_products(
    first: int,
    last: int,
    V: np.ndarray,
    R: np.ndarray,
    rings: np.ndarray,
    anchors: np.ndarray,
    n_radii: int,
    G: np.ndarray,
) -> None:
    width = V.shape[1]
    k = R.shape[1]
    for a in range(first, last):
        order, starts = _sorted_by_ring(rings[anchors[a]], n_radii)
        v = np.empty((_ROWS, width), np.float32)
        r = np.empty((_ROWS, k), np.float32)
        total = np.zeros((k, width), np.float64)
        for b in range(n_radii):
            for begin in range(starts[b], starts[b + 1], _ROWS):
                n = min(_ROWS, starts[b + 1] - begin)
                _gather(V, R, order[begin : begin + n], v, r)
                # This way round BLAS has the longer rows to run along.
                total += np.dot(r[:n].T, v[:n])
            for t in range(width):
                for c in range(k):
                    G[a, b, t, c] = total[c, t]


def ball_products(
    V: np.ndarray, R: np.ndarray, rings: np.ndarray, anchors: np.ndarray, n_radii: int
) -> np.ndarray:
    """Return XᵀR of all columns of given anchors."""
    # Products are float32 in blocks of 256 examples, sums of blocks are float64.
    G = np.empty((len(anchors), n_radii, V.shape[1], R.shape[1]))
    run_kernel(_ball_products, len(anchors), V, R, rings, anchors, n_radii, G)
    return G


@njit(cache=True, nogil=True)
def _ball_moments(
    first: int,
    last: int,
    V: np.ndarray,
    omega: np.ndarray,
    rings: np.ndarray,
    n_radii: int,
    out: np.ndarray,
) -> None:
    width = V.shape[1]
    for a in range(first, last):
        sums = np.zeros((n_radii + 1, 3, width), np.float64)
        for i in range(V.shape[0]):
            if omega[i] > 0:
                ring = sums[rings[a, i]]
                for t in range(width):
                    x = np.float64(V[i, t])
                    weighted = omega[i] * x
                    ring[0, t] += weighted
                    ring[1, t] += weighted * x
                    ring[2, t] = max(ring[2, t], abs(x))
        for b in range(n_radii):
            for t in range(width):
                if b > 0:
                    sums[b, 0, t] += sums[b - 1, 0, t]
                    sums[b, 1, t] += sums[b - 1, 1, t]
                    sums[b, 2, t] = max(sums[b, 2, t], sums[b - 1, 2, t])
                for s in range(3):
                    out[a, b, t, s] = sums[b, s, t]


def ball_moments(V: np.ndarray, omega: np.ndarray, rings: np.ndarray, n_radii: int) -> np.ndarray:
    """Return Σ ω x, Σ ω x² and max |x| over ω > 0 of all columns, float64."""
    out = np.empty((len(rings), n_radii, V.shape[1], 3))
    run_kernel(_ball_moments, len(rings), V, omega, rings, n_radii, out)
    return out


@njit(cache=True, nogil=True)
def _ball_columns(
    first: int,
    last: int,
    V: np.ndarray,
    rings: np.ndarray,
    n_radii: int,
    ids: np.ndarray,
    out: np.ndarray,
) -> None:
    width = V.shape[0]
    for j in range(first, last):
        pair, t = divmod(ids[j], width)
        a, b = divmod(pair, n_radii)
        for i in range(V.shape[1]):
            out[j, i] = V[t, i] if rings[a, i] <= b else np.float32(0)


def ball_columns(
    V: np.ndarray, rings: np.ndarray, n_radii: int, ids: np.ndarray, out: np.ndarray
) -> None:
    """Write columns."""
    run_kernel(_ball_columns, len(ids), V, rings, n_radii, ids, out)


@njit(cache=True, nogil=True)
def _anchor_squares(
    first: int, last: int, V: np.ndarray, anchors: np.ndarray, which: np.ndarray, out: np.ndarray
) -> None:
    for j in range(first, last):
        a = which[j]
        for i in range(V.shape[0]):
            square = 0.0
            for t in range(anchors.shape[0]):
                difference = np.float64(V[i, t]) - anchors[t, a]
                square += difference * difference
            out[j, i] = square


def anchor_squares(V: np.ndarray, anchors: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return ‖v − a‖² of some anchors and all examples, in the order of the family's own sums."""
    out = np.empty((which.shape[0], V.shape[0]), np.float64)
    run_kernel(_anchor_squares, len(which), V, anchors, which, out)
    return out


@njit(cache=True, nogil=True)
def _tapered_products(
    first: int,
    last: int,
    V: np.ndarray,
    R: np.ndarray,
    rings: np.ndarray,
    squares: np.ndarray,
    limits: np.ndarray,
    anchors: np.ndarray,
    G: np.ndarray,
) -> None:
    width = V.shape[1]
    k = R.shape[1]
    n_radii = limits.shape[1]
    for a in range(first, last):
        order, starts = _sorted_by_ring(rings[anchors[a]], n_radii)
        v = np.empty((_ROWS, width), np.float32)
        r = np.empty((_ROWS, 2 * k), np.float32)
        total = np.zeros((2 * k, width), np.float64)
        for b in range(n_radii):
            for begin in range(starts[b], starts[b + 1], _ROWS):
                n = min(_ROWS, starts[b + 1] - begin)
                rows = order[begin : begin + n]
                _gather(V, R, rows, v, r)
                for j in range(n):
                    for c in range(k):
                        r[j, k + c] = np.float32(r[j, c] * squares[a, rows[j]])
                total += np.dot(r[:n].T, v[:n])
            limit = limits[anchors[a], b]
            for t in range(width):
                for c in range(k):
                    G[a, b, t, c] = total[c, t] - total[k + c, t] / limit


def tapered_products(
    V: np.ndarray,
    R: np.ndarray,
    rings: np.ndarray,
    squares: np.ndarray,
    limits: np.ndarray,
    anchors: np.ndarray,
) -> np.ndarray:
    """Return XᵀR of all tapered columns of given anchors."""
    G = np.empty((len(anchors), limits.shape[1], V.shape[1], R.shape[1]))
    run_kernel(_tapered_products, len(anchors), V, R, rings, squares, limits, anchors, G)
    return G


@njit(cache=True, nogil=True)
def _tapered_moments(
    first: int,
    last: int,
    V: np.ndarray,
    omega: np.ndarray,
    rings: np.ndarray,
    squares: np.ndarray,
    limits: np.ndarray,
    out: np.ndarray,
) -> None:
    n_radii = limits.shape[1]
    width = V.shape[1]
    for a in range(first, last):
        for i in range(V.shape[0]):
            if omega[i] > 0:
                for b in range(rings[a, i], n_radii):
                    weight = taper(squares[a, i], limits[a, b])
                    for t in range(width):
                        # As columns have it.
                        x = np.float64(np.float32(weight * np.float64(V[i, t])))
                        weighted = omega[i] * x
                        out[a, b, t, 0] += weighted
                        out[a, b, t, 1] += weighted * x
                        out[a, b, t, 2] = max(out[a, b, t, 2], abs(x))


def tapered_moments(
    V: np.ndarray, omega: np.ndarray, rings: np.ndarray, squares: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """Return Σ ω x, Σ ω x² and max |x| over ω > 0 of all tapered columns of some anchors."""
    # Float64.
    out = np.zeros((len(rings), limits.shape[1], V.shape[1], 3))
    run_kernel(_tapered_moments, len(rings), V, omega, rings, squares, limits, out)
    return out


@njit(cache=True, nogil=True)
def _tapered_columns(
    first: int,
    last: int,
    V: np.ndarray,
    squares: np.ndarray,
    limits: np.ndarray,
    position: np.ndarray,
    ids: np.ndarray,
    out: np.ndarray,
) -> None:
    width = V.shape[0]
    n_radii = limits.shape[1]
    for j in range(first, last):
        pair, t = divmod(ids[j], width)
        a, b = divmod(pair, n_radii)
        for i in range(V.shape[1]):
            weight = taper(squares[position[j], i], limits[a, b])
            out[j, i] = np.float32(weight * np.float64(V[t, i]))


def tapered_columns(
    V: np.ndarray,
    squares: np.ndarray,
    limits: np.ndarray,
    position: np.ndarray,
    ids: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write tapered columns."""
    run_kernel(_tapered_columns, len(ids), V, squares, limits, position, ids, out)
