"""Depthwise templates in TensorFlow Lite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.templates.tflite import maxima

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.depthwise.integers import IntegerDepthwise


def emit(layer: IntegerDepthwise, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of the maxima; zeros stand for the channels that a template does not see."""
    weights = layer.weights
    channels = np.arange(layer.in_shape[2])
    if not np.array_equal(layer.sources, channels):
        weights = weights * (layer.sources[:, None] == channels)[:, None, None, :]
    return maxima(layer, weights, values, graph)
