"""Products of two inputs in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.products.family import Products


def emit(family: Products, graph: Graph) -> str:
    """Return the chosen products and inputs."""
    inputs = np.unique(family.pairs_[family.pairs_ >= 0])
    values = graph.inputs(inputs, family.input_offset_, family.input_scale_)
    pairs = np.searchsorted(inputs, family.pairs_)
    size = len(inputs)
    if (family.pairs_ < 0).any():
        # The value after the last input is the 1 that an input alone is multiplied with.
        one = graph.constant(np.float64(1))
        values = graph.node("Pad", values, graph.constant(np.array([0, 0, 0, 1])), one)
        pairs = np.where(family.pairs_ >= 0, pairs, size)
        size = size + 1
    left, right = (graph.take(values, column, size) for column in pairs.T)
    return graph.floats(graph.node("Mul", left, right))
