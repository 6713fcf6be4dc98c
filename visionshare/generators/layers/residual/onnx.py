"""Residual sums in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.layers.integers.onnx import check_exact, rounded
from visionshare.generators.layers.templates.onnx import largest_responses

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.residual.integers import IntegerResidual
    from visionshare.generators.layers.residual.layer import ResidualLayer


def emit(layer: ResidualLayer, images: str, graph: Graph) -> str:
    """Return the sums (n, rows, columns, n_templates), float32."""
    values = graph.unit_range(images)
    maxima = largest_responses(layer, layer.templates, values, graph)
    return graph.node("Add", graph.node("Relu", maxima), _skipped(layer, values, graph))


def emit_integers(layer: IntegerResidual, values: str, graph: Graph) -> str:
    """Return the bytes of the sums, as floats."""
    check_exact(layer, layer.most_added)
    factors = np.ldexp(np.float32(1), layer.lifts).astype(np.float32)
    added = graph.node("Mul", _skipped(layer, values, graph), graph.constant(factors))
    maxima = largest_responses(layer, layer.weights.astype(np.float32), values, graph)
    sums = graph.node("Add", graph.node("Relu", maxima), added)
    return rounded(sums, layer.shifts, (0, 255), graph)


def _skipped(layer: Any, values: str, graph: Graph) -> str:
    """Return what a layer of residual sums adds, (n, rows, columns, n_templates)."""
    half = layer.size // 2
    for axis, cells in ((1, layer.row_cells), (2, layer.col_cells)):
        middles = [
            int(np.flatnonzero(cells == cell)[0]) + half - layer.pads[axis - 1]
            for cell in range(int(cells.max()) + 1)
        ]
        if middles != list(range(layer.in_shape[axis - 1])):
            values = graph.node("Gather", values, graph.constant(np.array(middles)), axis=axis)
    if not np.array_equal(layer.sources, np.arange(layer.in_shape[2])):
        values = graph.node("Gather", values, graph.constant(layer.sources), axis=3)
    return values
