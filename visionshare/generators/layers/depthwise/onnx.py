"""Depthwise templates in ONNX: a convolution in groups, and maxima of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.generators.layers.templates.onnx import largest_responses

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.depthwise.layer import DepthwiseLayer

__all__ = ["emit"]


def emit(layer: DepthwiseLayer, images: str, graph: Graph) -> str:
    """Return the maxima (n, rows, columns, n_templates), float32."""
    # One channel for each template.
    channels = graph.node("Gather", graph.unit_range(images), graph.constant(layer.sources), axis=3)
    n = len(layer.templates)
    maxima = largest_responses(layer, layer.templates, layer.biases, channels, graph, n)
    return graph.node("Relu", maxima)
