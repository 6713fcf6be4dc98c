"""Chains in ONNX: convolutions, each of one map, maxima of cells, and maxima of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.chains.layers import cell_bounds

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.chains.family import Chains

__all__ = ["emit"]


def emit(family: Chains, graph: Graph) -> str:
    """Return the features of the family."""
    family = family.take(np.arange(family.n_features_))
    maps, n_before = graph.raster(), 0
    for own in family.layers_:
        n, q = len(own.templates), own.templates.shape[1]
        if n_before:
            # One group for each template: it sees its own map alone.
            maps = graph.take(maps, own.parents, n_before)
        maps = graph.node(
            "Conv", maps, graph.constant(own.templates.transpose(0, 3, 1, 2)),
            graph.constant(own.biases), kernel_shape=[q, q], group=n if n_before else 1,
        )  # fmt: skip
        if own.pool > 1:
            # Rows and columns that fill no cell are left out.
            maps = graph.node("MaxPool", maps, kernel_shape=[own.pool] * 2, strides=[own.pool] * 2)
        maps, n_before = graph.node("Relu", maps), n
    return _cells(family, graph, maps, n_before)


def _cells(family: Chains, graph: Graph, maps: str, n_chains: int) -> str:
    """Return the chosen maxima of maps (n, n_chains, h, w) in the cells of the grid."""
    rows, cols = (cell_bounds(side, family.grid) for side in family.map_shapes[-1])
    (chain, cell), parts = family.layout_.T, []
    for number in np.unique(cell):
        r, c = divmod(int(number), family.grid)
        starts, stops = (np.array([rows[i], cols[j]]) for i, j in ((r, c), (r + 1, c + 1)))
        ends = [graph.constant(part) for part in (starts, stops, np.array([2, 3]))]
        of_cell = graph.node("Slice", maps, *ends)
        axes = graph.constant(np.array([2, 3]))
        peaks = graph.node("ReduceMax", of_cell, axes, keepdims=0)
        features = np.flatnonzero(cell == number)
        parts.append((graph.take(peaks, chain[features], n_chains), features))
    return graph.concatenate(parts)
