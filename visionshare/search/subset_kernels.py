"""A draw of some of the candidates that are left, as a compiled function."""

from __future__ import annotations

import numpy as np
from numba import njit

# Positions for each one that is drawn up to which looking at all of them is faster than a sort.
_SPARSE = 16


@njit(cache=True, nogil=True)
def drawn(uniforms: np.ndarray, gone: np.ndarray, size: int) -> np.ndarray:
    """Return as many numbers below ``size`` as there are uniforms, ascending, all if too few."""
    # R. Floyd's sampling of positions among those that are left: a list of them would cost time
    # for each candidate.
    # uniforms: (n,), float64
    left = size - len(gone)
    n = min(len(uniforms), left)
    taken = np.zeros(left, np.bool_)
    found = np.empty(n, np.int64)
    for i in range(n):
        last = left - n + i
        position = int(uniforms[i] * (last + 1))
        if taken[position]:
            position = last
        taken[position] = True
        found[i] = position
    if left <= _SPARSE * n:
        i = 0
        for position in range(left):
            if taken[position]:
                found[i] = position
                i += 1
    else:
        found.sort()
    # Before the e-th number that is gone stand gone[e] − e others.
    e = 0
    for i in range(n):
        while e < len(gone) and gone[e] - e <= found[i]:
            e += 1
        found[i] += e
    return found
