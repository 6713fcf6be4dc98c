"""Products of two inputs in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.products.family import Products

__all__ = ["emit"]


def emit(family: Products, graph: Graph) -> str:
    """Return the chosen products and inputs."""
    used = np.unique(family.pairs_[family.pairs_ >= 0])
    values = graph.inputs(used, family.input_offset_, family.input_scale_)
    places, size = np.searchsorted(used, family.pairs_), len(used)
    if (family.pairs_ < 0).any():
        # One place more holds the 1 that an input alone is multiplied with.
        one = graph.constant(np.float64(1))
        values = graph.node("Pad", values, graph.constant(np.array([0, 0, 0, 1])), one)
        places, size = np.where(family.pairs_ >= 0, places, size), size + 1
    left, right = (graph.take(values, column, size) for column in places.T)
    return graph.floats(graph.node("Mul", left, right))
