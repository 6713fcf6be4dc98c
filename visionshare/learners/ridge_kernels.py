"""The whole forward selection over columns in memory, as one compiled loop.

A step is one product of the columns with a vector and one pass over two numbers a candidate. With
a dozen examples both take microseconds, less than a call from Python to either.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.search.subset_kernels import drawn

# Fraction of the error at which differences lose about two of single precision's seven digits.
_REFRESH = 1e-4
# Columns a block: what a step keeps of each stays in the first cache or the second.
_BLOCK = 2048
# Examples up to which plain loops replace BLAS: they are at least as fast up to there.
_MOST_LOOPED = 256
# Scales from its inverse to it have squares that single precision holds.
_USUAL = 1e6


@njit(cache=True, nogil=True)
def select(
    Z: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    root: np.ndarray,
    centered: np.ndarray,
    square: float,
    alpha: float,
    tol: float,
    rounds: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return what enters, its gains, the directions that G loses and Gy, a row a round."""
    # Z: (N, m), float32 or float64
    # offset, scale: (N,), float64
    # root: (m,), float64
    # centered: (m,), float64
    m = len(root)
    ids = np.empty(rounds, np.int64)
    gains = np.empty(rounds)
    U = np.empty((rounds, m))
    Gys = np.empty((rounds, m))
    Gy = centered / alpha
    whole = np.dot(centered, centered)
    p, q, least, unit = _start(Z, scale, square / alpha)
    best = _step(Z, unit, root * Gy, -1.0, 0.0, p, q, least)
    error = 1.0
    refreshed = 1.0
    for r in range(rounds):
        if not q[best] < np.inf:
            return ids[:r], gains[:r], U[:r], Gys[:r]
        z = np.empty(m)
        for i in range(m):
            z[i] = (Z[best, i] - offset[best]) * scale[best] * root[i]
        q[best] = np.inf
        v = _image(z, U[:r], alpha)
        ids[r], gains[r] = best, np.dot(z, Gy) ** 2 / (1 + np.dot(z, v))
        if not gains[r] > 1e-12 * whole / alpha:
            return ids[:r], gains[:r], U[:r], Gys[:r]
        U[r] = v / np.sqrt(1 + np.dot(z, v))
        share = np.dot(U[r], centered)
        Gy = Gy - U[r] * share
        Gys[r] = Gy
        before = error
        error = alpha * np.dot(centered, Gy) / whole
        if before - error < tol or r + 1 == rounds:
            return ids[: r + 1], gains[: r + 1], U[: r + 1], Gys[: r + 1]
        best = _step(Z, unit, root * U[r], share, 1.0, p, q, least)
        if error < _REFRESH * refreshed:
            # Differences of single-precision products lose digits as y is explained.
            p[:] = 0
            best = _step(Z, unit, root * Gy, -1.0, 0.0, p, q, least)
            refreshed = error
    return ids, gains, U, Gys


@njit(cache=True, nogil=True)
def select_drawn(
    Z: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    root: np.ndarray,
    centered: np.ndarray,
    square: float,
    alpha: float,
    tol: float,
    draws: np.ndarray,
    first: int,
    gone: np.ndarray,
    ids: np.ndarray,
    gains: np.ndarray,
    U: np.ndarray,
    Gys: np.ndarray,
) -> tuple[int, bool]:
    """Go on from round ``first`` with the best of a draw a round."""
    # Return rounds, and if all ended.
    # draws: (n_rounds, n), float64
    whole = np.dot(centered, centered)
    Gy = centered / alpha if first == 0 else Gys[first - 1].copy()
    error = 1.0 if first == 0 else alpha * np.dot(centered, Gy) / whole
    n_gone = len(gone) - len(ids) + first
    n_rounds = first + len(draws)
    m = len(root)
    # A row for Gy, and one for each direction, or of more directions than examples their Gram.
    rooted = np.empty((min(n_rounds, m) + 1, m), Z.dtype)
    gram = np.empty((0, m))
    for i in range(min(first, m)):
        rooted[i + 1] = root * U[i]
    for r in range(first, n_rounds):
        rooted[0] = root * Gy
        if r > m:
            if len(gram) == 0:
                gram = np.dot((root * U[:r]).T, root * U[:r])
            rooted[1:] = gram
        numbers = drawn(draws[r - first], gone[:n_gone], len(Z))
        candidates = _scaled(Z, numbers, offset, scale)
        best = _best_of(candidates, numbers, rooted[: min(r, m) + 1], square / alpha, r > m)
        if best < 0:
            return r, True
        z = (Z[best] - offset[best]) * (scale[best] * root)
        v = _image(z, U[:r], alpha)
        gain = np.dot(z, Gy) ** 2 / (1 + np.dot(z, v))
        if not gain > 1e-12 * whole / alpha:
            return r, True
        place = np.searchsorted(gone[:n_gone], best)
        gone[place + 1 : n_gone + 1] = gone[place:n_gone].copy()
        gone[place] = best
        n_gone += 1
        ids[r], gains[r] = best, gain
        U[r] = v / np.sqrt(1 + np.dot(z, v))
        if len(gram):
            gram += np.outer(root * U[r], root * U[r])
        elif r < m:
            rooted[r + 1] = root * U[r]
        Gy = Gy - U[r] * np.dot(U[r], centered)
        Gys[r] = Gy
        before = error
        error = alpha * np.dot(centered, Gy) / whole
        if before - error < tol:
            return r + 1, True
    return first + len(draws), False


@njit(cache=True, nogil=True)
def _scaled(
    Z: np.ndarray, numbers: np.ndarray, offset: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Return some candidates, a column each, scaled: zeros for one that may not enter."""
    columns = np.empty((Z.shape[1], len(numbers)), Z.dtype)
    for i in range(len(numbers)):
        number = numbers[i]
        mean = offset[number]
        factor = scale[number]
        for k in range(len(columns)):
            columns[k, i] = (Z[number, k] - mean) * factor
    return columns


@njit(cache=True, nogil=True)
def _best_of(
    columns: np.ndarray, numbers: np.ndarray, rooted: np.ndarray, square: float, is_gram: bool
) -> int:
    """Return the first number of the largest gain among some candidates, -1 for none."""
    # ``rooted`` has Gy and below it the directions, or their Gram matrix.
    products = np.dot(rooted, columns)
    explained = np.zeros(len(numbers))
    for j in range(1, len(rooted)):
        factors = columns[j - 1] if is_gram else products[j]
        for i in range(len(numbers)):
            explained[i] += np.float64(products[j, i]) * np.float64(factors[i])
    top = 0.0
    best = -1
    for i in range(len(numbers)):
        gain = np.float64(products[0, i]) ** 2 / (1 + max(square - explained[i], 0.0))
        if gain > top:
            top = gain
            best = numbers[i]
    return best


@njit(cache=True, nogil=True)
def _image(z: np.ndarray, U: np.ndarray, alpha: float) -> np.ndarray:
    """Return Gz."""
    v = z / alpha
    if len(z) > _MOST_LOOPED:
        for i in range(len(U)):
            v -= U[i] * np.dot(U[i], z)
        return v
    for i in range(len(U)):
        share = 0.0
        for k in range(len(z)):
            share += U[i, k] * z[k]
        for k in range(len(z)):
            v[k] -= U[i, k] * share
    return v


@njit(cache=True, nogil=True)
def _start(
    Z: np.ndarray, scale: np.ndarray, square: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return p = 0, q, the least q, and units of the candidates, before anything entered."""
    # Of every candidate p is zᵀGy and q is 1 + zᵀGz, without its scale: the gain p²/q is the
    # same. Directions and Gy have no part along root, so that a candidate's offset does not
    # matter either.
    N = len(Z)
    p = np.zeros(N, Z.dtype)
    q = np.empty(N, Z.dtype)
    least = np.empty(N, Z.dtype)
    unit = _units(scale).astype(Z.dtype)
    for i in range(N):
        inverse = 1 / scale[i] if scale[i] > 0 else np.inf
        if len(unit) > 0:
            inverse *= unit[i]
        least[i] = inverse * inverse
        q[i] = (1 + square) * inverse * inverse
    return p, q, least, unit


@njit(cache=True, nogil=True)
def _units(scale: np.ndarray) -> np.ndarray:
    """Return what products of each candidate are multiplied by."""
    # Empty where all scales are usual. Squares of single precision then stay within its range.
    # These are powers of two: no bit of a gain depends on them.
    usual = True
    for i in range(len(scale)):
        usual = usual and (scale[i] <= 0 or 1 / _USUAL < scale[i] < _USUAL)
    units = np.ones(0 if usual else len(scale))
    for i in range(len(units)):
        if scale[i] > 0:
            units[i] = 2.0 ** min(max(np.floor(np.log2(scale[i])), -126.0), 127.0)
    return units


@njit(cache=True, nogil=True)
def _step(
    Z: np.ndarray,
    unit: np.ndarray,
    w: np.ndarray,
    share: float,
    square: float,
    p: np.ndarray,
    q: np.ndarray,
    least: np.ndarray,
) -> int:
    """Take share · Zw out of p and square · (Zw)² out of q; return the first of the best p²/q."""
    # Products are multiplied by ``unit``, where it is not empty.
    N = len(p)
    best = 0
    top = np.float64(-1)
    narrow = w.astype(Z.dtype)
    gains = np.empty(_BLOCK, Z.dtype)
    by = np.array([share, square]).astype(Z.dtype)
    for start in range(0, N, _BLOCK):
        stop = min(N, start + _BLOCK)
        products = np.dot(Z[start:stop], narrow)
        if len(unit) > 0:
            products *= unit[start:stop]
        products_before = p[start:stop]
        spreads = q[start:stop]
        _update(products, by, products_before, spreads, least[start:stop])
        _gains(products_before, spreads, gains)
        for i in range(stop - start):
            if gains[i] > top:
                top = gains[i]
                best = start + i
    return best


@njit(cache=True, nogil=True)
def _update(t: np.ndarray, by: np.ndarray, p: np.ndarray, q: np.ndarray, least: np.ndarray) -> None:
    share = by[0]
    square = by[1]
    for i in range(len(p)):
        p[i] -= share * t[i]
        d = q[i] - square * t[i] * t[i]
        # 1 + zᵀGz is at least 1; rounding must not make it less.
        q[i] = d if d > least[i] else least[i]


@njit(cache=True, nogil=True)
def _gains(p: np.ndarray, q: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(p)):
        out[i] = p[i] * p[i] / q[i]
