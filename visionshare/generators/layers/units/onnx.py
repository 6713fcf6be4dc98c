"""Units in ONNX: a product of matrices, then the activation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.integers.onnx import check_exact, rounded

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.units.integers import IntegerUnits
    from visionshare.generators.layers.units.layer import UnitLayer


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


def emit_integers(layer: IntegerUnits, values: str, graph: Graph) -> str:
    """Return units of bytes, as floats (n, 1, 1, n_units)."""
    check_exact(layer)
    n, n_inputs = layer.weights.shape
    flat = graph.node("Reshape", values, graph.constant(np.array([0, n_inputs])))
    weights = graph.constant(layer.weights.astype(np.float32))
    biases = graph.constant(layer.biases.astype(np.float32))
    sums = graph.node("Gemm", flat, weights, biases, transB=1)
    if layer.square:
        roots = rounded(sums, layer.shifts, (-127, 127), graph)
        found = rounded(graph.node("Mul", roots, roots), np.full(n, 6), (0, 255), graph)
    else:
        found = rounded(sums, layer.shifts, (0, 255), graph)
    return graph.node("Reshape", found, graph.constant(np.array([0, 1, 1, n])))
