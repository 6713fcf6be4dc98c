"""Means in TensorFlow Lite: a depthwise convolution with equal weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.depthwise.tflite import spread
from visionshare.generators.layers.integers.tflite import sums

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.means.integers import IntegerMeans


def emit(layer: IntegerMeans, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of the means, (1, 1, 1, n_means)."""
    plane = np.ones((1, *layer.in_shape[:2], 1), np.int64)
    return sums(layer, spread(layer, layer.weights * plane), values, graph)
