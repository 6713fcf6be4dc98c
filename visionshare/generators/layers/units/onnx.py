"""Units in ONNX: a product of matrices, then the activation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.units.layer import UnitLayer

__all__ = ["emit"]


def emit(layer: UnitLayer, images: str, graph: Graph) -> str:
    """Return the units (n, 1, 1, n_units), float32."""
    n, n_inputs = layer.directions.shape
    inputs = graph.node("Reshape", images, graph.constant(np.array([0, n_inputs])))
    inputs = graph.unit_range(inputs)
    directions = graph.constant(np.ascontiguousarray(layer.directions.T))
    units = graph.node("Gemm", inputs, directions, graph.constant(layer.offsets))
    if layer.activation == "square":
        units = graph.node("Mul", units, units)
    if layer.activation == "relu":
        units = graph.node("Relu", units)
    return graph.node("Reshape", units, graph.constant(np.array([0, 1, 1, n])))
