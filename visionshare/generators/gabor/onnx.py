"""Gabor filters in ONNX: convolutions at a filter's positions, pooled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.gabor.family import GaborBank

_POOLINGS = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax"}


def emit(family: GaborBank, graph: Graph) -> str:
    """Return the chosen filters' pooled responses; filters of one size are one convolution."""
    height, width = family._size
    ids = np.arange(family.n_features_)
    reach = family._reach(ids)
    values = family._values(ids, reach)
    gray = graph.raster()
    if len(family.image_shape_) == 3 and family.image_shape_[2] > 1:
        gray = graph.node("ReduceMean", gray, graph.constant(np.array([1])), keepdims=1)
    parts = []
    for features, axes in family._by_positions(reach):
        for r in np.unique(reach[features]):
            same = features[reach[features] == r]
            ry = min(int(r), height - 1)
            rx = min(int(r), width - 1)
            taps = values[same, height - 1 - ry : height + ry, width - 1 - rx : width + rx]
            responses = _responses(graph, gray, (height, width), taps, axes)
            over = graph.constant(np.array([2, 3]))
            absolute = graph.node("Abs", responses)
            parts.append((graph.node(_POOLINGS[family.pooling], absolute, over, keepdims=0), same))
    return graph.concatenate(parts)


def _responses(
    graph: Graph,
    gray: str,
    size: tuple[int, int],
    taps: np.ndarray,
    axes: tuple[np.ndarray, np.ndarray],
) -> str:
    """Return the responses (n, filters, rows, columns) of filters of one size."""
    starts = []
    stops = []
    before = []
    after = []
    strides = []
    indices = []
    for positions, side, width in zip(axes, size, taps.shape[1:], strict=True):
        first = int(positions[0])
        last = int(positions[-1])
        reach = width // 2
        steps = np.unique(np.diff(positions))
        strides.append(int(steps[0]) if len(steps) == 1 else 1)
        starts.append(max(0, first - reach))
        stops.append(min(side, last + reach + 1))
        before.append(max(0, reach - first))
        after.append(max(0, last + reach + 1 - side))
        # Uneven positions are taken from all between the first and the last.
        indices.append((positions - first) // strides[-1])
    image = gray
    if starts != [0, 0] or stops != list(size):
        ends = [graph.constant(np.array(bound)) for bound in (starts, stops, [2, 3])]
        image = graph.node("Slice", gray, *ends)
    filters = graph.constant(taps[:, None])
    shape = list(taps.shape[1:])
    out = graph.node(
        "Conv", image, filters, kernel_shape=shape, pads=before + after, strides=strides
    )
    for axis, chosen in enumerate(indices, 2):
        out = graph.take(out, chosen, int(chosen[-1]) + 1, axis)
    return out
