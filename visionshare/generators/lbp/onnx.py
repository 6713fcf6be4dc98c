"""Local binary patterns in ONNX: sums of shifted images, a table of codes, and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.lbp.family import LocalBinaryPatterns


def emit(family: LocalBinaryPatterns, graph: Graph) -> str:
    """Return the chosen fractions; patterns are computed in the rectangle that holds the cells."""
    cell, code = family.cells_and_codes(np.arange(family.n_features_))
    used, row = np.unique(cell, return_inverse=True)
    cells = family.cells_[used]
    box = (*cells[:, [0, 2]].min(axis=0).tolist(), *cells[:, [1, 3]].max(axis=0).tolist())
    patterns = _patterns(family, graph, box)
    codes = graph.node("Gather", graph.constant(family.code_of_pattern), patterns, axis=0)
    known = graph.constant(np.arange(family.n_codes))
    # (n, pixels, 1) against all codes: sums of ones are whole, and so exact.
    is_code = graph.floats(graph.node("Equal", codes, known))
    counts = graph.node("MatMul", graph.constant(_members(cells, box)), is_code)
    flat = graph.node("Flatten", counts, axis=1)
    chosen = graph.take(flat, row.reshape(-1) * family.n_codes + code, len(used) * family.n_codes)
    scales = (1 / family.sizes[cell]).astype(np.float32)
    return graph.node("Mul", chosen, graph.constant(scales))


def _members(cells: np.ndarray, box: tuple[int, ...]) -> np.ndarray:
    """Return which pixels of the rectangle each cell has, (n_cells, pixels) float32."""
    members = np.zeros((len(cells), box[2] - box[0], box[3] - box[1]), np.float32)
    for k, (y0, y1, x0, x1) in enumerate(cells):
        members[k, y0 - box[0] : y1 - box[0], x0 - box[1] : x1 - box[1]] = 1
    return members.reshape(len(cells), -1)


def _patterns(family: LocalBinaryPatterns, graph: Graph, box: tuple[int, ...]) -> str:
    """Return the patterns (n, pixels, 1), int64, of a rectangle (top, left, bottom, right)."""
    rows, cols, channels = (*family.image_shape_, 1)[:3]
    shape = graph.constant(np.array([0, rows, cols, channels]))
    raw = graph.floats(graph.node("Reshape", graph.images, shape))
    gray = graph.node("ReduceSum", raw, graph.constant(np.array([3])), keepdims=1)

    def shifted(down: int, right: int) -> str:
        first = np.array([box[0] + down, box[1] + right])
        last = np.array([box[2] + down, box[3] + right])
        ends = [graph.constant(part) for part in (first, last, np.array([1, 2]))]
        return graph.node("Slice", gray, *ends)

    taps = family.circle
    center = shifted(0, 0)
    pattern = ""
    for p, (start, stop) in enumerate(zip(taps.starts[:-1], taps.starts[1:], strict=True)):
        total = ""
        for t in range(start, stop):
            difference = graph.node("Sub", shifted(int(taps.rows[t]), int(taps.cols[t])), center)
            part = graph.node("Mul", difference, graph.constant(taps.weights[t]))
            total = graph.node("Add", total, part) if total else part
        bit = graph.node("GreaterOrEqual", total, graph.constant(np.float32(0)))
        worth = graph.node("Mul", graph.floats(bit), graph.constant(np.float32(2**p)))
        pattern = graph.node("Add", pattern, worth) if pattern else worth
    pixels = (box[2] - box[0]) * (box[3] - box[1])
    flat = graph.node("Reshape", pattern, graph.constant(np.array([0, pixels, 1])))
    return graph.cast(flat, "INT64")
