"""Means of one image."""

from __future__ import annotations

import numpy as np

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
    """Write the mean of each channel."""
    # Integers: positions, channels, and the channel of each mean.
    sources = ints[2:]
    out[:] = np.float32(0)
    for position in range(ints[0]):
        pixel = x[position * ints[1] : (position + 1) * ints[1]]
        for t in range(out.shape[0]):
            out[t] += pixel[sources[t]]
    factor = unit / np.float32(ints[0])
    for t in range(out.shape[0]):
        out[t] *= factor
