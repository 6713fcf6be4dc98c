"""Channels in ONNX: weighted sums, shifted images, sums over windows, and means of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.channels.layer import ChannelLayer

_ROWS = 2
_COLS = 3


class _Gradients(NamedTuple):
    """Names of derivatives along x and y, and of magnitudes, each (n, 1, H, W)."""

    along: str
    down: str
    size: str


def emit(layer: ChannelLayer, images: str, graph: Graph) -> str:
    """Return the channels (n, rows, columns, maps), floats whatever the images are."""
    height, width, n_values = layer.in_shape
    raster = graph.floats(images)
    raster = graph.node("Transpose", raster, perm=[0, 3, 1, 2])
    formulas = layer.formulas
    parts: list[tuple[str, np.ndarray]] = []
    if len(formulas.colors):
        parts.append((_colors(layer, raster, graph), formulas.color_maps))
    if formulas.has_gradients:
        parts += _gradient_maps(layer, _gradients(raster, height, width, n_values, graph), graph)
    maps = graph.concatenate(parts)
    if layer.pool > 1:
        side = [layer.pool, layer.pool]
        maps = graph.node("AveragePool", maps, kernel_shape=side, strides=side)
    # What sums are multiplied with is of means here.
    factor = layer.scales(graph.bytes)[1] * np.float32(layer.pool**2)
    maps = graph.node("Mul", maps, graph.constant(np.float32(factor)))
    return graph.node("Transpose", maps, perm=[0, 2, 3, 1])


def _shifted(values: str, axis: int, start: int, stop: int, graph: Graph) -> str:
    ends = (graph.constant(np.array([number])) for number in (start, stop, axis))
    return graph.node("Slice", values, *ends)


def _colors(layer: ChannelLayer, raster: str, graph: Graph) -> str:
    """Return the maps of colors, (n, n_colors, H, W)."""
    weights = layer.formulas.colors
    values = ""
    for c in range(weights.shape[1]):
        weight = graph.constant(weights[:, c].reshape(-1, 1, 1))
        part = graph.node("Mul", _shifted(raster, 1, c, c + 1, graph), weight)
        values = graph.node("Add", values, part) if c else part
    if layer.normalization == "none":
        return values
    values = graph.node("Sub", values, _means(layer, values, graph))
    squares = _means(layer, graph.node("Mul", values, values), graph)
    epsilon = graph.constant(layer.scales(graph.bytes)[0])
    deviations = graph.node("Add", graph.node("Sqrt", squares), epsilon)
    return graph.node("Div", values, deviations)


def _gradients(raster: str, height: int, width: int, n_values: int, graph: Graph) -> _Gradients:
    """Return the gradient of the value of a pixel where it is largest, the first of equal ones."""
    ends = graph.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    wide = graph.node("Pad", raster, ends, mode="edge")
    half = graph.constant(np.float32(0.5))
    inner = _shifted(wide, _ROWS, 1, height + 1, graph)
    left, right = (_shifted(inner, _COLS, at, at + width, graph) for at in (0, 2))
    inner = _shifted(wide, _COLS, 1, width + 1, graph)
    above, below = (_shifted(inner, _ROWS, at, at + height, graph) for at in (0, 2))
    along, down = (
        graph.node("Mul", graph.node("Sub", after, before), half)
        for after, before in ((right, left), (below, above))
    )
    squares = (graph.node("Mul", values, values) for values in (along, down))
    square = graph.node("Add", *squares)
    if n_values > 1:
        best = graph.node("ArgMax", square, axis=1, keepdims=1)
        along, down, square = (
            graph.node("GatherElements", values, best, axis=1) for values in (along, down, square)
        )
    return _Gradients(along, down, graph.node("Sqrt", square))


def _gradient_maps(
    layer: ChannelLayer, gradients: _Gradients, graph: Graph
) -> list[tuple[str, np.ndarray]]:
    """Return the maps of gradients with their numbers."""
    formulas = layer.formulas
    maps = []
    if formulas.magnitude_map >= 0:
        maps.append((gradients.size, np.array([formulas.magnitude_map])))
    n = len(formulas.orientations)
    if n:
        numbers = formulas.orientation_map + np.arange(n)
        maps.append((_orientations(formulas.orientations, gradients, graph), numbers))
    if layer.normalization == "none":
        return maps
    epsilon = graph.constant(layer.scales(graph.bytes)[0])
    by = graph.node("Add", _means(layer, gradients.size, graph), epsilon)
    return [(graph.node("Div", values, by), numbers) for values, numbers in maps]


def _orientations(tables: np.ndarray, gradients: _Gradients, graph: Graph) -> str:
    """Return the maps of orientations, (n, n_orientations, H, W)."""
    sums = []
    for table in (tables[:, 0], tables[:, 1]):
        products = (
            graph.node("Mul", values, graph.constant(table[:, axis].reshape(-1, 1, 1)))
            for axis, values in enumerate((gradients.along, gradients.down))
        )
        sums.append(graph.node("Add", *products))
    low = graph.node("Min", *sums)
    high = graph.node("Neg", graph.node("Max", *sums))
    return graph.node("Relu", graph.node("Max", low, high))


def _means(layer: ChannelLayer, values: str, graph: Graph) -> str:
    """Return means over windows, as far as they lie in the image: sums over rows, then columns."""
    height, width, _ = layer.in_shape
    reach = layer.window // 2
    ends = graph.constant(np.array([0, 0, reach, reach, 0, 0, reach, reach]))
    sums = graph.node("Pad", values, ends, graph.constant(np.float32(0)))
    for axis, side in ((_ROWS, height), (_COLS, width)):
        total = ""
        for start in range(layer.window):
            part = _shifted(sums, axis, start, start + side, graph)
            total = graph.node("Add", total, part) if start else part
        sums = total
    inside = [
        np.minimum(np.arange(side) + reach + 1, side) - np.maximum(np.arange(side) - reach, 0)
        for side in (height, width)
    ]
    counts = np.multiply.outer(*inside).astype(np.float32)
    return graph.node("Div", sums, graph.constant(counts))
