"""Templates in ONNX: one convolution, and maxima of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.templates.tables import regular_pool

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.templates.layer import TemplateLayer

__all__ = ["cell_maxima", "emit"]


def emit(layer: TemplateLayer, images: str, graph: Graph) -> str:
    """Return the maxima (n, rows, columns, n_templates), float32."""
    raster = graph.node("Transpose", images, perm=[0, 3, 1, 2])
    raster = graph.unit_range(raster)
    q = layer.templates.shape[1]
    pad_y, pad_x = layer.pads
    responses = graph.node(
        "Conv",
        raster,
        graph.constant(layer.templates.transpose(0, 3, 1, 2)),
        graph.constant(layer.biases),
        kernel_shape=[q, q],
        pads=[pad_y, pad_x, pad_y, pad_x],
    )
    maxima = cell_maxima(responses, layer.row_cells, layer.col_cells, graph)
    return graph.node("Transpose", graph.node("Relu", maxima), perm=[0, 2, 3, 1])


def cell_maxima(responses: str, row_cells: np.ndarray, col_cells: np.ndarray, graph: Graph) -> str:
    """Return the maxima in cells of responses (n, templates, rows, columns)."""
    pool = regular_pool(row_cells, col_cells)
    if pool == 1:
        return _first(responses, len(row_cells), len(col_cells), row_cells, col_cells, graph)
    if pool:
        # Rows and columns that fill no cell are left out.
        return graph.node("MaxPool", responses, kernel_shape=[pool, pool], strides=[pool, pool])
    for axis, cells in ((2, row_cells), (3, col_cells)):
        along = graph.constant(np.array([axis]))
        parts = []
        for cell in range(int(cells.max()) + 1):
            positions = np.flatnonzero(cells == cell)
            own = graph.node("Gather", responses, graph.constant(positions), axis=axis)
            parts.append(graph.node("ReduceMax", own, along, keepdims=1))
        responses = graph.node("Concat", *parts, axis=axis)
    return responses


def _first(
    responses: str, rows: int, columns: int, row_cells: np.ndarray, col_cells: np.ndarray,
    graph: Graph,
) -> str:  # fmt: skip
    """Return the responses without those that are in no cell."""
    used = int((row_cells >= 0).sum()), int((col_cells >= 0).sum())
    if used == (rows, columns):
        return responses
    ends = (graph.constant(np.array(numbers)) for numbers in ([0, 0], used, [2, 3]))
    return graph.node("Slice", responses, *ends)
