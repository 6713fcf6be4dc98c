"""The kernel of the search for stumps: prefix sums of the residual, scored where they stand."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from visionshare.store.stump_kernels import share_scale

__all__ = ["best_stumps"]


@njit(cache=True, nogil=True, parallel=True)
def best_stumps(
    order: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    share: np.ndarray,
    excluded: np.ndarray,
    R: np.ndarray,
    offset_sum: np.ndarray,
    noise: float,
    centred: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best stump of each input, (p,) int64, and its score, (p,) float64.

    A score is Σ_q |(Σ_i R_iq over the stump's examples − share · offset_sum_q) · scale|. The
    lowest number wins among equals; an input whose stumps are all excluded has −1 and −∞.
    Sums are float64 and follow the order alone: no result depends on threads.

    Parameters
    ----------
    order, starts, counts, share, noise, centred
        See :class:`visionshare.store.StumpColumns`.
    excluded : ndarray of bool, shape (d,)
    R : ndarray of shape (m, k), float32, contiguous
    offset_sum : ndarray of shape (k,), float64
        Σ_i R_iq where columns are centred, else zero.
    """
    p, k = order.shape[0], R.shape[1]
    number, score = np.full(p, -1, np.int64), np.full(p, -np.inf)
    for r in prange(p):
        row = order[r]
        total = np.zeros(k, np.float64)
        at, best, place = 0, -np.inf, -1
        for s in range(starts[r], starts[r + 1]):
            for t in range(at, counts[s]):
                # Unsigned, so that no index can count from the end: that would cost a check.
                example = R[np.uint32(row[t])]
                for q in range(k):
                    total[q] += example[q]
            at = counts[s]
            if excluded[s]:
                continue
            norm = 0.0
            for q in range(k):
                norm += abs(total[q] - share[s] * offset_sum[q])
            norm *= share_scale(share[s], noise, centred)
            if norm > best:
                best, place = norm, s
        number[r], score[r] = place, best
    return number, score
