"""Channels of one image, for chains of layers."""

from __future__ import annotations

import numpy as np

from visionshare.generators.layers.channels.formulas import Formulas
from visionshare.generators.layers.channels.planes import CellMeans, channels_of
from visionshare.generators.layers.steps import kernel

# Numbers before the table of the colors' maps, and floats before those of the formulas.
HEADER = 11


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
    """Write the channels of an image."""
    height = ints[0]
    width = ints[1]
    n_values = ints[2]
    n_colors = ints[6]
    n_orientations = ints[7]
    pool = ints[8]
    window = ints[9]
    n_maps = ints[5]
    ends = 1 + n_colors * n_values
    formulas = Formulas(
        weights[1:ends].reshape((n_colors, n_values)),
        ints[HEADER + 1 : HEADER + 1 + n_colors],
        ints[10],
        weights[ends : ends + 4 * n_orientations].reshape((n_orientations, 2, 2)),
        ints[HEADER],
        n_maps,
    )
    scale = 1.0 if unit == 1 else 1 / 255
    epsilon = np.float32(weights[0] / scale)
    factor = np.float32((1.0 if window else scale) / pool**2)
    image = x.reshape((height, width, n_values))
    maps = out.reshape((ints[3], ints[4], n_maps))
    channels_of(image, formulas, CellMeans(window, epsilon, pool, factor), maps)
