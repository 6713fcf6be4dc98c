"""Kernels of anchors that move: gradients of features in anchors and radii."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from visionshare.generators.anchors.kernels import taper


@njit(cache=True, nogil=True)
def anchor_gradients(
    V: np.ndarray,
    anchors: np.ndarray,
    limits: np.ndarray,
    pair: np.ndarray,
    part: np.ndarray,
    G: np.ndarray,
    tapered: bool,
    of_anchors: np.ndarray,
    of_radii: np.ndarray,
) -> None:
    """Add the gradients of Σ_if G_if x_if in anchors and in logarithms of radii."""
    # V: (n, q), float32
    # anchors: (P, q), float64
    # limits: (P,), float64
    # pair, part: (n_features,), int32
    # G: (n, n_features), float32
    # of_anchors: (P, q), float64
    # of_radii: (P,), float64
    n_pairs, q = anchors.shape
    for i in range(V.shape[0]):
        # The derivative in what each pair multiplies [v, 1] with.
        slope = np.zeros(n_pairs, np.float64)
        for f in range(pair.shape[0]):
            value = np.float64(V[i, part[f]]) if tapered and part[f] < q else 1.0
            slope[pair[f]] += np.float64(G[i, f]) * value
        for p in range(n_pairs):
            if slope[p] == 0.0:
                continue
            square = 0.0
            for t in range(q):
                difference = np.float64(V[i, t]) - anchors[p, t]
                square += difference * difference
            share = square / limits[p]
            if tapered:
                # d/d‖v − a‖² is −1/r² inside, d/d log r is 2 ‖v − a‖²/r².
                inside = 1.0 if taper(square, limits[p]) > 0 else 0.0
                in_square = -inside / limits[p]
                in_log = 2 * inside * share
            else:
                bell = math.exp(-0.5 * share)
                in_square = -0.5 * bell / limits[p]
                in_log = bell * share
            of_radii[p] += slope[p] * in_log
            pull = 2 * slope[p] * in_square
            for t in range(q):
                of_anchors[p, t] += pull * (anchors[p, t] - np.float64(V[i, t]))
