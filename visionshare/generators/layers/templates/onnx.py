"""Templates in ONNX: one convolution, and maxima of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.layers.integers.onnx import check_exact, rounded
from visionshare.generators.layers.templates.cells import OneChannelTemplates
from visionshare.generators.layers.templates.tables import position_step, regular_pool

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.templates.integers import IntegerTemplates
    from visionshare.generators.layers.templates.layer import TemplateLayer


def emit(layer: TemplateLayer, images: str, graph: Graph) -> str:
    """Return the maxima with 0, (n, rows, columns, n_templates), float32."""
    values = graph.unit_range(images)
    maxima = largest_responses(layer, layer.templates, values, graph)
    return graph.node("Relu", maxima)


def emit_integers(layer: IntegerTemplates, values: str, graph: Graph) -> str:
    """Return the bytes of the maxima, as floats."""
    check_exact(layer)
    maxima = largest_responses(layer, layer.weights.astype(np.float32), values, graph)
    return rounded(maxima, layer.shifts, (0, 255), graph)


def largest_responses(layer: Any, taps: np.ndarray, values: str, graph: Graph) -> str:
    """Return the maxima of responses in a layer's cells, (n, rows, columns, n_templates)."""
    q = taps.shape[1]
    pad_y, pad_x = layer.pads
    groups = 1
    step = position_step(layer.row_cells, layer.col_cells)
    if isinstance(layer, OneChannelTemplates):
        groups = len(taps)
        values = graph.node("Gather", values, graph.constant(layer.sources), axis=3)
    responses = graph.node(
        "Conv",
        graph.node("Transpose", values, perm=[0, 3, 1, 2]),
        graph.constant(taps.transpose(0, 3, 1, 2)),
        graph.constant(layer.biases.astype(np.float32)),
        kernel_shape=[q, q],
        pads=[pad_y, pad_x, pad_y, pad_x],
        strides=[step, step],
        group=groups,
    )
    maxima = _cell_maxima(responses, layer.row_cells[::step], layer.col_cells[::step], graph)
    return graph.node("Transpose", maxima, perm=[0, 2, 3, 1])


def _cell_maxima(responses: str, row_cells: np.ndarray, col_cells: np.ndarray, graph: Graph) -> str:
    """Return the maxima in cells of responses (n, templates, rows, columns)."""
    pool = regular_pool(row_cells, col_cells)
    if pool == 1:
        # Positions in no cell are left out.
        ends = [int((cells >= 0).sum()) for cells in (row_cells, col_cells)]
        if ends == [len(row_cells), len(col_cells)]:
            return responses
        bounds = [graph.constant(np.array(numbers)) for numbers in ([0, 0], ends, [2, 3])]
        return graph.node("Slice", responses, *bounds)
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
