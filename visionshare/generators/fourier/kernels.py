"""The kernel of chosen random Fourier features."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def chosen_pairs(
    X: np.ndarray,
    offset: np.ndarray,
    scale: np.ndarray,
    V: np.ndarray,
    pair_of: np.ndarray,
    part: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write cosines and sines of projections, one image at a time."""
    # X: (n, p), float64
    # offset, scale: (p,), float64
    # V: (p, pairs), float64
    # pair_of, part: int64, shape (n_features,)
    # out: (n, n_features), float32
    pairs = V.shape[1]
    for i in range(X.shape[0]):
        phase = np.zeros(pairs, np.float64)
        for d in range(X.shape[1]):
            x = (X[i, d] - offset[d]) * scale[d]
            for j in range(pairs):
                phase[j] += x * V[d, j]
        for f in range(out.shape[1]):
            angle = phase[pair_of[f]]
            out[i, f] = np.float32(np.cos(angle) if part[f] == 0 else np.sin(angle))
