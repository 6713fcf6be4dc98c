"""Weighted sums of all values of an image, for chains of layers."""

from __future__ import annotations

import numpy as np

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.steps import kernel


@kernel
def forward(
    x: np.ndarray,
    unit: np.float32,
    ints: np.ndarray,
    weights: np.ndarray,
    work: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write activations of weighted sums."""
    weights = uncounted(weights)
    n_inputs = ints[0]
    n = ints[1]
    lanes = ints[2]
    activation = ints[3]
    # Memory of its own: the compiler sees that nothing else reads it.
    sums = np.empty(lanes, np.float32)
    sums[:] = weights[:lanes]
    for i in range(n_inputs):
        value = x[i] * unit
        # Many maxima are 0.
        if value != 0:
            line = weights[(i + 1) * lanes : (i + 2) * lanes]
            for j in range(lanes):
                sums[j] += value * line[j]
    for j in range(n):
        total = sums[j]
        if activation == 0:
            total = total if total > 0 else np.float32(0)
        elif activation == 1:
            total = total * total
        out[j] = total
