"""Unions of families in ONNX: the features of the parts, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.union.family import UnionOfFamilies


def emit(family: UnionOfFamilies, graph: Graph) -> str:
    """Return the features of all parts, in the order of the union."""
    parts = zip(family.parts_, family._ids, strict=True)
    return graph.concatenate([(graph.add(part), ids) for part, ids in parts if len(ids)])
