"""The kernel of the search for stumps: prefix sums of the residual, scored where they stand."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.stumps.kernels import share_scale
from visionshare.machine.resources import run_kernel

# Rounding errors of a sum, as a fraction of the sum of absolute values: some 10^-16 a term.
_ROUNDING = 1e-9


@njit(cache=True, nogil=True)
def _size(values: np.ndarray) -> float:
    size = 0.0
    for value in values:
        size += abs(value)
    return size


@njit(cache=True, nogil=True)
def _sizes(first: int, last: int, R: np.ndarray, sizes: np.ndarray) -> None:
    """Write Σ_q |R_iq| of each row."""
    for i in range(first, last):
        sizes[i] = _size(R[i])


@njit(cache=True, nogil=True)
def _norm(total: np.ndarray, share: float, offset_sum: np.ndarray) -> float:
    norm = 0.0
    for q in range(total.shape[0]):
        norm += abs(total[q] - share * offset_sum[q])
    return norm


@njit(cache=True, nogil=True)
def _best_stumps(
    first: int,
    last: int,
    order: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    share: np.ndarray,
    excluded: np.ndarray,
    R: np.ndarray,
    sizes: np.ndarray,
    margin: float,
    offset_sum: np.ndarray,
    offset_size: float,
    noise: float,
    centered: bool,
    number: np.ndarray,
    score: np.ndarray,
) -> None:
    k = R.shape[1]
    for r in range(first, last):
        row = order[r]
        total = np.zeros(k, np.float64)
        at = 0
        best = -np.inf
        chosen = -1
        # No norm is above this plus what the share has moved since it was last formed.
        bound = margin
        formed_at = 0.0
        for s in range(starts[r], starts[r + 1]):
            for t in range(at, counts[s]):
                # Unsigned, so that no index can count from the end: that would cost a check.
                i = np.uint32(row[t])
                bound += sizes[i]
                for q in range(k):
                    total[q] += R[i, q]
            at = counts[s]
            scale = share_scale(share[s], noise, centered)
            moved = (share[s] - formed_at) * offset_size
            if excluded[s] or (bound + moved) * scale < best:
                continue
            norm = _norm(total, share[s], offset_sum)
            bound = norm + margin
            formed_at = share[s]
            if norm * scale > best:
                best = norm * scale
                chosen = s
        number[r] = chosen
        score[r] = best


def best_stumps(
    order: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    share: np.ndarray,
    excluded: np.ndarray,
    R: np.ndarray,
    offset_sum: np.ndarray,
    noise: float,
    centered: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best stump of each input, (p,) int64, and its score, (p,) float64."""
    p = len(order)
    sizes = np.empty(len(R))
    run_kernel(_sizes, len(R), R, sizes)
    margin = _ROUNDING * _size(sizes)
    offset_size = _size(offset_sum)
    number = np.full(p, -1, np.int64)
    score = np.full(p, -np.inf)
    run_kernel(
        _best_stumps, p, order, starts, counts, share, excluded, R, sizes, margin,
        offset_sum, offset_size, noise, centered, number, score,
    )  # fmt: skip
    return number, score
