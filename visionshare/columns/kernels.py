"""Kernels that read columns in place: at given offsets of a flat buffer.

A buffer is a one-dimensional array of float64, float32, or float16 seen as uint16; column j is
``buffer[offsets[j] : offsets[j] + m]``. Memory, memory-mapped shards and subsets of columns are
then all the same to a kernel. Tiles of a fixed size go through single-threaded BLAS, one thread a
tile, so that a column's result depends on nothing but the column. Private kernels compute the
tiles, or columns, from ``first`` to ``last``; public functions divide them among threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.machine.resources import run_kernel

_COLUMNS = 32
_ROWS = 1024
# A half's exponent is 112 less than a single's: moving the bits scales by 2^-112, exactly.
_HALF_SCALE = np.float32(2.0**112)
# Expanded halves lie below 2^-96. A residual is brought below 2^96 before it meets them: products
# are then below 1 and far above 2^-126, where float32 loses bits and some processors need fifty
# times as long.
_RESIDUAL_EXPONENT = 96


@njit(cache=True, nogil=True)
def _expand(half: np.ndarray, bits: np.ndarray) -> None:
    """Write float16 bits as the bits of float32 values that are 2^112 times too small."""
    for i in range(half.shape[0]):
        h = np.uint32(half[i])
        bits[i] = ((h & np.uint32(0x8000)) << np.uint32(16)) | (
            (h & np.uint32(0x7FFF)) << np.uint32(13)
        )


@njit(cache=True, nogil=True)
def _correlate_half(
    first: int,
    last: int,
    buffer: np.ndarray,
    offsets: np.ndarray,
    R: np.ndarray,
    units: np.ndarray,
    G: np.ndarray,
) -> None:
    n, (m, k) = offsets.shape[0], R.shape
    for block in range(first, last):
        bits = np.zeros((_COLUMNS, _ROWS), np.uint32)
        tile = bits.view(np.float32)
        total = np.zeros((_COLUMNS, k), np.float64)
        lowest = block * _COLUMNS
        count = min(_COLUMNS, n - lowest)
        for row in range(0, m, _ROWS):
            size = min(_ROWS, m - row)
            for j in range(count):
                start = offsets[lowest + j] + row
                _expand(buffer[start : start + size], bits[j])
            if size == _ROWS:
                total += np.dot(tile, R[row : row + _ROWS])
            else:
                total += np.dot(np.ascontiguousarray(tile[:, :size]), R[row:])
        for j in range(count):
            for q in range(k):
                G[lowest + j, q] = total[j, q] * units[q]


@njit(cache=True, nogil=True)
def _correlate_full(
    first: int, last: int, buffer: np.ndarray, offsets: np.ndarray, R: np.ndarray, G: np.ndarray
) -> None:
    n, (m, k) = offsets.shape[0], R.shape
    for block in range(first, last):
        tile = np.zeros((_COLUMNS, _ROWS), buffer.dtype)
        total = np.zeros((_COLUMNS, k), np.float64)
        lowest = block * _COLUMNS
        count = min(_COLUMNS, n - lowest)
        for row in range(0, m, _ROWS):
            size = min(_ROWS, m - row)
            for j in range(count):
                start = offsets[lowest + j] + row
                values = buffer[start : start + size]
                line = tile[j]
                # A loop compiles in half the time of an assignment, which checks shapes.
                for i in range(size):
                    line[i] = values[i]
            if size == _ROWS:
                total += np.dot(tile, R[row : row + _ROWS])
            else:
                total += np.dot(np.ascontiguousarray(tile[:, :size]), R[row:])
        for j in range(count):
            for q in range(k):
                G[lowest + j, q] = total[j, q]


def correlate(buffer: np.ndarray, offsets: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return x_jᵀR (n, k), float64, for the columns at ``offsets``."""
    # Products are of the buffer's precision (float32 for float16) in blocks of 1024 examples,
    # sums of blocks are float64. With float16 and float32 each column of R is first multiplied by
    # a power of two, which changes no bit of a result and keeps residuals of any size.
    n_tiles = -(-len(offsets) // _COLUMNS)
    G = np.empty((len(offsets), R.shape[1]), np.float64)
    if buffer.dtype == np.float64:
        run_kernel(
            _correlate_full, n_tiles, buffer, offsets, np.ascontiguousarray(R, np.float64), G
        )
        return G
    half = buffer.dtype == np.uint16
    exponents = _exponents(R, _RESIDUAL_EXPONENT if half else 0)
    raised = np.ascontiguousarray(np.ldexp(R, exponents), np.float32)
    if half:
        units = np.ldexp(1.0, 112 - exponents)
        run_kernel(_correlate_half, n_tiles, buffer, offsets, raised, units, G)
        return G
    run_kernel(_correlate_full, n_tiles, buffer, offsets, raised, G)
    return np.ldexp(G, -exponents)


def _exponents(R: np.ndarray, below: int) -> np.ndarray:
    """Return for each column of R the power of two that brings it just below 2^below, int32."""
    if not len(R):
        return np.zeros(R.shape[1], np.int32)
    peaks = np.abs(R).max(axis=0)
    usable = np.isfinite(peaks) & (peaks > 0)
    exponents = np.frexp(np.where(usable, peaks, 1.0))[1]
    return np.where(usable, np.clip(below - exponents, -800, 800), 0).astype(np.int32)


@njit(cache=True, nogil=True)
def _gather_half(
    first: int,
    last: int,
    buffer: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    bits: np.ndarray,
) -> None:
    m = out.shape[1]
    for j in range(first, last):
        _expand(buffer[offsets[j] : offsets[j] + m], bits[j])
        for i in range(m):
            out[j, i] *= _HALF_SCALE


@njit(cache=True, nogil=True)
def _gather_full(
    first: int, last: int, buffer: np.ndarray, offsets: np.ndarray, out: np.ndarray
) -> None:
    m = out.shape[1]
    for j in range(first, last):
        values = buffer[offsets[j] : offsets[j] + m]
        line = out[j]
        for i in range(m):
            line[i] = values[i]


def gather(buffer: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Write the columns at ``offsets`` into ``out`` (n, m), float32 (float64 from float64)."""
    if buffer.dtype == np.uint16:
        run_kernel(_gather_half, len(out), buffer, offsets, out, out.view(np.uint32))
    else:
        run_kernel(_gather_full, len(out), buffer, offsets, out)


@njit(cache=True, nogil=True)
def _pick(
    first: int,
    last: int,
    buffer: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    targets: np.ndarray,
    out: np.ndarray,
) -> None:
    for j in range(first, last):
        begin = offsets[j]
        row = out[targets[j]]
        for i in range(rows.shape[0]):
            row[i] = buffer[begin + rows[i]]


def pick(
    buffer: np.ndarray, offsets: np.ndarray, rows: np.ndarray, targets: np.ndarray, out: np.ndarray
) -> None:
    """Copy some examples of the columns at ``offsets`` into rows of ``out``, bit by bit."""
    run_kernel(_pick, len(offsets), buffer, offsets, rows, targets, out)


@njit(cache=True, nogil=True)
def _moments_half(
    first: int,
    last: int,
    buffer: np.ndarray,
    offsets: np.ndarray,
    omega: np.ndarray,
    out: np.ndarray,
) -> None:
    m = omega.shape[0]
    for j in range(first, last):
        bits = np.zeros(_ROWS, np.uint32)
        values = bits.view(np.float32)
        for row in range(0, m, _ROWS):
            size = min(_ROWS, m - row)
            start = offsets[j] + row
            _expand(buffer[start : start + size], bits)
            _add_moments(values, omega[row : row + size], 2.0**112, out[j])


@njit(cache=True, nogil=True)
def _moments_full(
    first: int,
    last: int,
    buffer: np.ndarray,
    offsets: np.ndarray,
    omega: np.ndarray,
    out: np.ndarray,
) -> None:
    m = omega.shape[0]
    for j in range(first, last):
        for row in range(0, m, _ROWS):
            size = min(_ROWS, m - row)
            start = offsets[j] + row
            _add_moments(buffer[start : start + size], omega[row : row + size], 1.0, out[j])


@njit(cache=True, nogil=True)
def _add_moments(values: np.ndarray, omega: np.ndarray, unit: float, out: np.ndarray) -> None:
    mean = 0.0
    square = 0.0
    peak = out[2]
    for i in range(omega.shape[0]):
        x = values[i] * unit
        weighted = omega[i] * x
        mean += weighted
        square += weighted * x
        if omega[i] > 0 and abs(x) > peak:
            peak = abs(x)
    out[0] += mean
    out[1] += square
    out[2] = peak


def moments(buffer: np.ndarray, offsets: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Return Σ ω x, Σ ω x² and max |x| over ω > 0 of each column, (n, 3) float64."""
    omega = np.ascontiguousarray(omega, np.float64)
    kernel = _moments_half if buffer.dtype == np.uint16 else _moments_full
    out = np.zeros((len(offsets), 3), np.float64)
    run_kernel(kernel, len(offsets), buffer, offsets, omega, out)
    return out


@njit(cache=True, nogil=True)
def _correlate_sparse(
    first: int,
    last: int,
    starts: np.ndarray,
    rows: np.ndarray,
    values: np.ndarray,
    ids: np.ndarray,
    R: np.ndarray,
    G: np.ndarray,
) -> None:
    k = R.shape[1]
    for j in range(first, last):
        for entry in range(starts[ids[j]], starts[ids[j] + 1]):
            x = np.float64(values[entry])
            i = rows[entry]
            for q in range(k):
                G[j, q] += x * R[i, q]


def correlate_sparse(
    starts: np.ndarray, rows: np.ndarray, values: np.ndarray, ids: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """Return XᵀR (n, k), float64, for columns of a sparse matrix kept by columns."""
    G = np.zeros((len(ids), R.shape[1]))
    run_kernel(_correlate_sparse, len(ids), starts, rows, values, ids, R, G)
    return G


@njit(cache=True, nogil=True)
def _moments_sparse(
    first: int,
    last: int,
    starts: np.ndarray,
    rows: np.ndarray,
    values: np.ndarray,
    omega: np.ndarray,
    out: np.ndarray,
) -> None:
    for j in range(first, last):
        for entry in range(starts[j], starts[j + 1]):
            x = np.float64(values[entry])
            weight = omega[rows[entry]]
            out[j, 0] += weight * x
            out[j, 1] += weight * x * x
            if weight > 0 and abs(x) > out[j, 2]:
                out[j, 2] = abs(x)


def moments_sparse(
    starts: np.ndarray, rows: np.ndarray, values: np.ndarray, omega: np.ndarray
) -> np.ndarray:
    """Return Σ ω x, Σ ω x² and max |x| over ω > 0 of each column of a sparse matrix, (d, 3)."""
    out = np.zeros((len(starts) - 1, 3))
    run_kernel(_moments_sparse, len(out), starts, rows, values, omega, out)
    return out
