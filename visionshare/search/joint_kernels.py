"""Kernels of the search for stumps that a subset of the classes shares."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.machine.resources import run_kernel

# Gains nearer to each other than this fraction of them are equal: sums round.
_TIE = 1e-10


@njit(cache=True, nogil=True)
def _part(signed: float, weight: float) -> float:
    """Return p²/w, what a mean p/w takes from the weighted squares; |p| is at most w."""
    if weight <= 0:
        return 0.0
    signed = min(abs(signed), weight)
    return signed * signed / weight


@njit(cache=True, nogil=True)
def _alone(weight: np.ndarray, signed: np.ndarray, q: int) -> float:
    """Return what the threshold gains for one class alone, at least 0."""
    gain = _part(signed[0, q], weight[0, q]) + _part(signed[1, q], weight[1, q])
    gain -= _part(signed[0, q] + signed[1, q], weight[0, q] + weight[1, q])
    return max(gain, 0.0)


@njit(cache=True, nogil=True)
def _above(value: float, best: float) -> bool:
    return value > best + _TIE * abs(best) if best > -np.inf else value > best


@njit(cache=True, nogil=True)
def grown_subset(
    weight: np.ndarray, signed: np.ndarray, least: float, members: np.ndarray
) -> tuple[float, int]:
    """Return the gain of the best subset of classes on a greedy chain, and its size."""
    # The chain begins with the class that gains most and takes in the class that leaves most, up
    # to all classes; the best of its subsets counts. With sums over a subset on either side of
    # the threshold, the gain is Σ_sides (Σp)²/Σw − Σ_c P_c²/W_c: what the weighted squared error
    # of a constant for each class loses.
    # weight, signed: (2, k), float64
    # members: int64, shape (k,)
    k = weight.shape[1]
    left = 0.0
    for q in range(k):
        left += _alone(weight, signed, q)
    # (Σp)²/Σw ≤ Σ p²/w: together classes gain at most what they gain alone.
    if left <= least:
        return -np.inf, 0
    base = np.empty(k)
    for q in range(k):
        base[q] = _part(signed[0, q] + signed[1, q], weight[0, q] + weight[1, q])
        members[q] = q
    best = -np.inf
    size = 0
    gain = 0.0
    constants = 0.0
    w0 = 0.0
    w1 = 0.0
    p0 = 0.0
    p1 = 0.0
    for n in range(k):
        if gain + left <= max(least, best):
            break
        leading = -np.inf
        chosen = n
        for t in range(n, k):
            q = members[t]
            value = _part(p0 + signed[0, q], w0 + weight[0, q])
            value += _part(p1 + signed[1, q], w1 + weight[1, q]) - constants - base[q]
            if _above(value, leading):
                leading = value
                chosen = t
        q = members[chosen]
        # Those that are not in yet keep their order: the lowest class wins among equals.
        for t in range(chosen, n, -1):
            members[t] = members[t - 1]
        members[n] = q
        w0 = w0 + weight[0, q]
        w1 = w1 + weight[1, q]
        p0 = p0 + signed[0, q]
        p1 = p1 + signed[1, q]
        constants += base[q]
        left -= _alone(weight, signed, q)
        gain = leading
        if _above(gain, best):
            best = gain
            size = n + 1
    return best, size


@njit(cache=True, nogil=True)
def _add_whole(
    w: np.ndarray, positive: np.ndarray, whole: np.ndarray, whole_positive: np.ndarray
) -> None:
    """Add up each class's weights, and the weights of its own examples."""
    for i in range(w.shape[0]):
        for q in range(w.shape[1]):
            whole[q] += w[i, q]
        if positive[i] >= 0:
            whole_positive[positive[i]] += w[i, positive[i]]


@njit(cache=True, nogil=True)
def _best_shared_stumps(
    first: int,
    last: int,
    order: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    w: np.ndarray,
    positive: np.ndarray,
    whole: np.ndarray,
    whole_positive: np.ndarray,
    number: np.ndarray,
    score: np.ndarray,
) -> None:
    k = w.shape[1]
    for r in range(first, last):
        row = order[r]
        below = np.zeros(k)
        below_positive = np.zeros(k)
        weight = np.empty((2, k))
        signed = np.empty((2, k))
        members = np.empty(k, np.int64)
        at = 0
        best = -np.inf
        chosen = -1
        for s in range(starts[r], starts[r + 1]):
            for t in range(at, counts[s]):
                i = row[t]
                for q in range(k):
                    below[q] += w[i, q]
                if positive[i] >= 0:
                    below_positive[positive[i]] += w[i, positive[i]]
            at = counts[s]
            for q in range(k):
                weight[0, q] = below[q]
                weight[1, q] = max(whole[q] - below[q], 0.0)
                signed[0, q] = 2 * below_positive[q] - below[q]
                signed[1, q] = 2 * whole_positive[q] - whole[q] - signed[0, q]
            gain, size = grown_subset(weight, signed, best, members)
            if size > 0 and _above(gain, best):
                best = gain
                chosen = s
        number[r] = chosen
        score[r] = best


def best_shared_stumps(
    order: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    w: np.ndarray,
    positive: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best shared stump of each input, (p,) int64, and its gain, (p,) float64."""
    # One walk along an input's order examines all its thresholds: prefix sums of the weights, and
    # a greedy subset of the classes at each, O(mk + thresholds · k²). Where all classes alone
    # would not gain more than the input's best, no subset can, and none is grown. The lowest
    # number wins among equals.
    p = len(order)
    k = w.shape[1]
    whole = np.zeros(k)
    whole_positive = np.zeros(k)
    _add_whole(w, positive, whole, whole_positive)
    number = np.full(p, -1, np.int64)
    score = np.full(p, -np.inf)
    held = order, starts, counts, w, positive
    run_kernel(_best_shared_stumps, p, *held, whole, whole_positive, number, score)
    return number, score
