"""Depthwise templates in ONNX: a convolution in groups, and maxima of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.integers.onnx import check_exact, rounded
from visionshare.generators.layers.templates.onnx import largest_responses

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.depthwise.integers import IntegerDepthwise
    from visionshare.generators.layers.depthwise.layer import DepthwiseLayer


def emit(layer: DepthwiseLayer, images: str, graph: Graph) -> str:
    """Return the maxima (n, rows, columns, n_templates), float32."""
    maxima = _maxima(layer, layer.templates, graph.unit_range(images), graph)
    return graph.node("Relu", maxima)


def emit_integers(layer: IntegerDepthwise, values: str, graph: Graph) -> str:
    """Return the bytes of the maxima, as floats."""
    check_exact(layer)
    maxima = _maxima(layer, layer.weights.astype(np.float32), values, graph)
    return rounded(maxima, layer.shifts, (0, 255), graph)


def _maxima(
    layer: DepthwiseLayer | IntegerDepthwise, taps: np.ndarray, values: str, graph: Graph
) -> str:
    """Return the maxima of responses, one channel for each template."""
    channels = graph.node("Gather", values, graph.constant(layer.sources), axis=3)
    return largest_responses(layer, taps, layer.biases, channels, graph, len(taps))
