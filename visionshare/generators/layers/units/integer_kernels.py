"""Units in integers, for one image of bytes in floats."""

from __future__ import annotations

import numpy as np

from visionshare.generators.emitter import uncounted
from visionshare.generators.layers.integers.kernels import LARGEST_ROOT, SQUARE_SHIFT, rounded
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
    """Write units: weighted sums of all values, rectified or squared, shifted and cut off."""
    # Integers: inputs, units, whether they are squares, shifts. Weights: biases, then inputs.
    taps = uncounted(weights).view(np.int32)
    n_inputs = ints[0]
    n = ints[1]
    square = ints[2]
    sums = work.view(np.int32)[:n]
    for t in range(n):
        sums[t] = taps[t]
    for j in range(n_inputs):
        value = np.int32(x[j])
        if value:
            line = taps[(j + 1) * n : (j + 2) * n]
            for t in range(n):
                sums[t] += value * line[t]
    for t in range(n):
        total = np.int64(sums[t])
        if square:
            # The sign goes with the square; sizes are rounded alike.
            root = min(max(rounded(total, ints[3 + t]), -LARGEST_ROOT), LARGEST_ROOT)
            out[t] = min(rounded(root * root, SQUARE_SHIFT), 255)
        else:
            out[t] = min(rounded(max(total, np.int64(0)), ints[3 + t]), 255)
