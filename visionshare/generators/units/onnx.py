"""Units in ONNX: a product of matrices, then max(0, ·) or the square."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.units.family import Units

__all__ = ["emit"]


def emit(family: Units, graph: Graph) -> str:
    """Return the units of the family's features."""
    inputs = graph.add(family.part_)
    directions = graph.constant(np.ascontiguousarray(family.directions_.T))
    sums = graph.node("Gemm", inputs, directions, graph.constant(family.offsets_))
    if family.activation == "square":
        return graph.node("Mul", sums, sums)
    return graph.node("Relu", sums)
