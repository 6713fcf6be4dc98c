"""Templates in TensorFlow Lite: a convolution, and maxima of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.integers.tflite import sums
from visionshare.generators.layers.templates.tables import position_step, regular_pool

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.templates.integers import IntegerTemplates

_VALID = np.int8(1)


def emit(layer: IntegerTemplates, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of the maxima, (1, rows, columns, n_templates)."""
    return maxima(layer, layer.weights, values, graph)


def maxima(
    layer: IntegerTemplates, weights: np.ndarray, values: Tensor, graph: TfliteGraph
) -> Tensor:
    """Return the largest responses of templates in a layer's cells."""
    # 1) zeros around the image, by the convolution itself where it can
    half = layer.size // 2
    step = position_step(layer.row_cells, layer.col_cells)
    same = step == 1 and layer.size % 2 == 1 and tuple(layer.pads) == (half, half)
    if max(layer.pads) > 0 and not same:
        values = _padded(values, layer.pads, graph)
    found = sums(layer, weights, values, graph, same, step=step)
    row_cells = layer.row_cells[::step]
    col_cells = layer.col_cells[::step]
    # 2) maxima: of rounded sums, which are the rounded maxima
    rows, columns, _ = layer.out_shape
    pool = regular_pool(row_cells, col_cells)
    if pool and [side // pool for side in found.shape[1:3]] == [rows, columns]:
        return found if pool == 1 else _pooled(found, pool, pool, graph)
    for axis, cells in ((1, row_cells), (2, col_cells)):
        found = _cell_maxima(found, axis, cells, graph)
    return found


def _padded(values: Tensor, pads: tuple[int, int], graph: TfliteGraph) -> Tensor:
    _, height, width, channels = values.shape
    out = graph.like_bytes((1, height + 2 * pads[0], width + 2 * pads[1], channels))
    sides = np.array([[0, 0], [pads[0]] * 2, [pads[1]] * 2, [0, 0]], np.int32)
    return graph.node("PAD", values, graph.constant(sides), out=out)


def _pooled(values: Tensor, rows: int, columns: int, graph: TfliteGraph) -> Tensor:
    """Return the maxima of blocks of rows and columns."""
    _, height, width, channels = values.shape
    out = graph.like_bytes((1, height // rows, width // columns, channels))
    sides = [np.int32(side) for side in (columns, rows, columns, rows)]
    return graph.node("MAX_POOL_2D", values, out=out, options=[_VALID, *sides])


def _cell_maxima(values: Tensor, axis: int, cells: np.ndarray, graph: TfliteGraph) -> Tensor:
    """Return the maxima of cells along an axis: one slice of each, side by side."""
    parts = []
    for cell in range(int(cells.max()) + 1):
        positions = np.flatnonzero(cells == cell)
        begin = np.zeros(4, np.int32)
        begin[axis] = positions[0]
        size = np.array(values.shape, np.int32)
        size[axis] = len(positions)
        bounds = [graph.constant(begin), graph.constant(size)]
        part = graph.node("SLICE", values, *bounds, out=graph.like_bytes(size.tolist()))
        rows, columns = (len(positions), 1) if axis == 1 else (1, len(positions))
        parts.append(_pooled(part, rows, columns, graph))
    if len(parts) == 1:
        return parts[0]
    shape = list(values.shape)
    shape[axis] = len(parts)
    return graph.joined(parts, shape, axis)
