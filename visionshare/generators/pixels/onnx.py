"""Pixels in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.pixels.family import Pixels


def emit(family: Pixels, graph: Graph) -> str:
    """Return the chosen pixels."""
    return graph.unit_range(graph.pixels(family.ids_))
