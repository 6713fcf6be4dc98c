"""Patch templates in ONNX: convolutions where masks reach, weighted and maximized."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.patches.plan import template_windows

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.patches.family import PatchTemplates


def emit(family: PatchTemplates, graph: Graph) -> str:
    """Return the chosen templates under their masks."""
    # Templates of one window are one convolution. The rows of a mask come before its columns, as
    # in the library: that rounds the same way.
    templates, windows, window_of, _ = template_windows(
        family.layout_, family.row_masks_, family.col_masks_
    )
    canvas = _canvas(family, graph)
    size = tuple(m.shape[1] + family.patch_size - 1 for m in (family.row_masks_, family.col_masks_))
    taps = family.templates_.transpose(0, 3, 1, 2)
    zero = graph.constant(np.float32(0))
    parts = []
    for window in np.unique(windows, axis=0):
        same = np.flatnonzero((windows == window).all(axis=1))
        responses = _responses(graph, canvas, size, window, taps[templates[same]])
        features = np.flatnonzero(np.isin(window_of, same))
        rank = np.searchsorted(same, window_of[features])
        responses = graph.take(responses, rank, len(same))
        y0, y1, x0, x1 = window
        rows = family.row_masks_[family.layout_[features, 1], y0:y1]
        cols = family.col_masks_[family.layout_[features, 2], x0:x1]
        axis = graph.constant(np.array([2]))
        # A smaller support inside the window is zero outside of it, which no maximum sees.
        peaks = graph.node("Mul", responses, graph.constant(rows[:, :, None]))
        peaks = graph.node("ReduceMax", peaks, axis, keepdims=0)
        peaks = graph.node("Mul", peaks, graph.constant(cols))
        peaks = graph.node("ReduceMax", peaks, axis, keepdims=0)
        parts.append((graph.node("Max", peaks, zero), features))
    return graph.concatenate(parts)


def _canvas(family: PatchTemplates, graph: Graph) -> str:
    """Return the images (n, C, H, W) with zeros around them."""
    pad_y, pad_x = family.pads_
    raster = graph.raster()
    if not (pad_y or pad_x):
        return raster
    pads = np.array([0, 0, pad_y, pad_x, 0, 0, pad_y, pad_x])
    return graph.node("Pad", raster, graph.constant(pads))


def _responses(
    graph: Graph, canvas: str, size: tuple[int, ...], window: np.ndarray, taps: np.ndarray
) -> str:
    """Return the responses (n, templates, rows, columns) inside a window of positions."""
    q = taps.shape[-1]
    y0, y1, x0, x1 = map(int, window)
    starts = [y0, x0]
    stops = [y1 + q - 1, x1 + q - 1]
    if starts != [0, 0] or stops != list(size):
        ends = [graph.constant(np.array(bound)) for bound in (starts, stops, [2, 3])]
        canvas = graph.node("Slice", canvas, *ends)
    return graph.node("Conv", canvas, graph.constant(taps), kernel_shape=[q, q])
