"""Kernels over the sorted order of inputs: a stump is 1 on the first ``count`` examples of it.

Stumps come input by input: those of row r of ``order`` are ``starts[r]`` to ``starts[r + 1]``,
their counts ascending. One thread walks one row from its beginning, in float64, so that a result
depends neither on threads nor on what else is asked for.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["fill", "prefix_sums", "share_scale", "share_scales", "weight_shares"]


@njit(cache=True, nogil=True)
def share_scale(share: float, noise: float, centered: bool) -> float:
    """Return the scale of a stump that is 1 on a share of the weights; 0 where it is constant.

    Mean and mean square are the share, so the variance is share · (1 − share), and the peak is 1.
    """
    if share <= 0 or 1 - share <= noise:
        return 0.0
    return 1 / np.sqrt(share * (1 - share)) if centered else 1.0


@njit(cache=True, nogil=True)
def share_scales(share: np.ndarray, noise: float, centered: bool) -> np.ndarray:
    """Return :func:`share_scale` of each share, (n,) float64."""
    out = np.empty(share.shape[0], np.float64)
    for s in range(share.shape[0]):
        out[s] = share_scale(share[s], noise, centered)
    return out


@njit(cache=True, nogil=True, parallel=True)
def weight_shares(
    order: np.ndarray, starts: np.ndarray, counts: np.ndarray, omega: np.ndarray
) -> np.ndarray:
    """Return the sum of omega over the examples of each stump, (d,) float64."""
    out = np.empty(counts.shape[0], np.float64)
    for r in prange(order.shape[0]):
        total, at = 0.0, 0
        for s in range(starts[r], starts[r + 1]):
            for t in range(at, counts[s]):
                total += omega[order[r, t]]
            at = counts[s]
            out[s] = total
    return out


@njit(cache=True, nogil=True, parallel=True)
def prefix_sums(
    order: np.ndarray, rows: np.ndarray, starts: np.ndarray, counts: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """Return the sums of R's rows over each stump's examples, (n, k) float64.

    ``rows`` are the rows of ``order`` that ``starts`` speaks of.
    """
    k = R.shape[1]
    out = np.empty((counts.shape[0], k), np.float64)
    for j in prange(rows.shape[0]):
        row = order[rows[j]]
        total = np.zeros(k, np.float64)
        at = 0
        for s in range(starts[j], starts[j + 1]):
            for t in range(at, counts[s]):
                example = R[row[t]]
                for q in range(k):
                    total[q] += example[q]
            at = counts[s]
            out[s] = total
    return out


@njit(cache=True, nogil=True, parallel=True)
def fill(order: np.ndarray, rows: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
    """Write stumps as the rows of ``out`` (n, m): 1 on the first examples of a row of order."""
    for j in prange(out.shape[0]):
        out[j] = 0
        row = order[rows[j]]
        for t in range(counts[j]):
            out[j, row[t]] = 1
