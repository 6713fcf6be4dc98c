"""Depthwise templates in TensorFlow Lite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.templates.tflite import maxima

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.depthwise.integers import IntegerDepthwise


def emit(layer: IntegerDepthwise, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of the maxima."""
    return maxima(layer, spread(layer, layer.weights), values, graph)


def spread(layer: IntegerDepthwise, weights: np.ndarray) -> np.ndarray:
    """Return weights with zeros for the channels that a template does not see, if there are any."""
    channels = np.arange(layer.in_shape[2])
    if np.array_equal(layer.sources, channels):
        return weights
    return np.asarray(weights * (layer.sources[:, None] == channels)[:, None, None, :])
