"""Means in ONNX: sums over rows and columns, times a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.layers.integers.onnx import check_exact, rounded

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.means.integers import IntegerMeans
    from visionshare.generators.layers.means.layer import MeanLayer


def emit(layer: MeanLayer, images: str, graph: Graph) -> str:
    """Return the means (n, 1, 1, n_means), float32."""
    factor = np.float32(1 / layer.n_positions)
    return _sums(layer, factor, graph.unit_range(images), graph)


def emit_integers(layer: IntegerMeans, values: str, graph: Graph) -> str:
    """Return the bytes of the means, as floats."""
    check_exact(layer, layer.most_added)
    sums = _sums(layer, layer.weights.ravel().astype(np.float32), values, graph)
    return rounded(sums, layer.shifts, (0, 255), graph)


def _sums(layer: Any, factors: Any, values: str, graph: Graph) -> str:
    if not np.array_equal(layer.sources, np.arange(layer.in_shape[2])):
        values = graph.node("Gather", values, graph.constant(layer.sources), axis=3)
    sums = graph.node("ReduceSum", values, graph.constant(np.array([1, 2])), keepdims=1)
    return graph.node("Mul", sums, graph.constant(factors))
