"""Kernels over the sorted order of inputs: a stump is 1 on the first ``count`` examples of it.

Stumps come input by input: those of row r of ``order`` are ``starts[r]`` to ``starts[r + 1]``,
their counts ascending. One thread walks one row from its beginning, in float64, so that a result
depends neither on threads nor on what else is asked for: private kernels walk the rows, or columns,
from ``first`` to ``last``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.machine.resources import run_kernel


@njit(cache=True, nogil=True)
def share_scale(share: float, noise: float, centered: bool) -> float:
    """Return the scale of a stump that is 1 on a share of the weights; 0 where it is constant."""
    # Mean and mean square are the share, so the variance is share · (1 − share), and the peak is
    # 1.
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


@njit(cache=True, nogil=True)
def _weight_shares(
    first: int,
    last: int,
    order: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    omega: np.ndarray,
    out: np.ndarray,
) -> None:
    for r in range(first, last):
        total = 0.0
        at = 0
        for s in range(starts[r], starts[r + 1]):
            for t in range(at, counts[s]):
                total += omega[order[r, t]]
            at = counts[s]
            out[s] = total


def weight_shares(
    order: np.ndarray, starts: np.ndarray, counts: np.ndarray, omega: np.ndarray
) -> np.ndarray:
    """Return the sum of omega over the examples of each stump, (d,) float64."""
    out = np.empty(counts.shape[0], np.float64)
    run_kernel(_weight_shares, len(order), order, starts, counts, omega, out)
    return out


@njit(cache=True, nogil=True)
def _prefix_sums(
    first: int,
    last: int,
    order: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    R: np.ndarray,
    out: np.ndarray,
) -> None:
    k = R.shape[1]
    for j in range(first, last):
        row = order[rows[j]]
        total = np.zeros(k, np.float64)
        at = 0
        for s in range(starts[j], starts[j + 1]):
            for t in range(at, counts[s]):
                # Unsigned, so that no index can count from the end: that would cost a check.
                i = np.uint32(row[t])
                for q in range(k):
                    total[q] += R[i, q]
            at = counts[s]
            out[s] = total


def prefix_sums(
    order: np.ndarray, rows: np.ndarray, starts: np.ndarray, counts: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """Return the sums of R's rows over each stump's examples, (n, k) float64."""
    # ``rows`` are the rows of ``order`` that ``starts`` speaks of.
    out = np.empty((len(counts), R.shape[1]))
    run_kernel(_prefix_sums, len(rows), order, rows, starts, counts, R, out)
    return out


@njit(cache=True, nogil=True)
def _fill(
    first: int, last: int, order: np.ndarray, rows: np.ndarray, counts: np.ndarray, out: np.ndarray
) -> None:
    for j in range(first, last):
        out[j] = 0
        row = order[rows[j]]
        for t in range(counts[j]):
            out[j, row[t]] = 1


def fill(order: np.ndarray, rows: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
    """Write stumps as the rows of ``out`` (n, m): 1 on the first examples of a row of order."""
    run_kernel(_fill, len(out), order, rows, counts, out)
