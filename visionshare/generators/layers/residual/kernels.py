"""Residual sums of one image."""

from __future__ import annotations

import numpy as np

from visionshare.generators.layers.steps import kernel
from visionshare.generators.layers.templates.kernels import templates_forward


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
    """Write the responses of templates, at least 0, plus the values in the middle of patches."""
    # Integers: the number of outputs, the place of each one's middle, the numbers of the templates.
    n = ints[0]
    templates_forward(x, unit, ints[n + 1 :], weights, work, out, places)
    for j in range(n):
        out[j] += x[ints[j + 1]] * unit
