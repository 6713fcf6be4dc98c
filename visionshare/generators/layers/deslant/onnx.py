"""Deslanted images in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.deslant.layer import DeslantLayer

__all__ = ["emit"]


def emit(layer: DeslantLayer, images: str, graph: Graph) -> str:
    """Return deslanted images, of the type of the images."""
    rows, cols, channels = layer.in_shape
    moves = _moves(images, rows, cols, graph)
    whole = graph.node("Floor", moves)
    right = graph.floats(graph.node("Sub", moves, whole))
    left = graph.node("Sub", graph.constant(np.float32(1)), right)
    # What moves in from beyond an edge is a column of zeros.
    sides = graph.constant(np.array([0, 0, 1, 0, 0, 0, 1, 0]))
    zero = graph.constant(np.float32(0))
    wide = graph.node("Pad", graph.floats(images), sides, zero)
    half = graph.constant(np.float32(0.5 if graph.bytes else 0))
    value = half
    for step, weight in ((0, left), (1, right)):
        x = graph.constant(np.arange(cols, dtype=np.float64).reshape(cols, 1) + step + 1)
        column = graph.node("Add", whole, x)
        bounds = (graph.constant(np.float64(0)), graph.constant(np.float64(cols + 1)))
        column = graph.node("Clip", column, *bounds)
        column = graph.cast(column, "INT64")
        if channels > 1:
            ones = graph.constant(np.array([1, 1, 1, channels]))
            column = graph.node("Expand", column, ones)
        pixels = graph.node("GatherElements", wide, column, axis=2)
        value = graph.node("Add", value, graph.node("Mul", weight, pixels))
    if graph.bytes:
        value = graph.cast(graph.node("Floor", value), "UINT8")
    return value


def _moves(images: str, rows: int, cols: int, graph: Graph) -> str:
    """Return how far each row moves, (n, rows, 1, 1), float64."""

    def total(values: str, *axes: int) -> str:
        return graph.node("ReduceSum", values, graph.constant(np.array(axes)), keepdims=1)

    zero = graph.constant(np.float64(0))
    one = graph.constant(np.float64(1))
    y = graph.constant(np.arange(rows, dtype=np.float64).reshape(rows, 1, 1))
    x = graph.constant(np.arange(cols, dtype=np.float64).reshape(cols, 1))
    weight = total(graph.node("Max", graph.doubles(images), zero), 3)
    row = total(weight, 2)
    moment = total(graph.node("Mul", weight, x), 2)
    mass = total(row, 1)
    across = total(moment, 1)
    first, both = (total(graph.node("Mul", sums, y), 1) for sums in (row, moment))
    second = total(graph.node("Mul", graph.node("Mul", row, y), y), 1)
    not_empty = graph.node("Greater", mass, zero)
    middle = graph.node("Div", first, graph.node("Where", not_empty, mass, one))
    spread = graph.node("Sub", second, graph.node("Mul", first, middle))
    least = graph.node("Mul", second, graph.constant(np.float64(1e-9)))
    leans = graph.node("Greater", spread, least)
    slope = graph.node(
        "Div",
        graph.node("Sub", both, graph.node("Mul", across, middle)),
        graph.node("Where", leans, spread, one),
    )
    slope = graph.node("Clip", slope, graph.constant(np.float64(-1)), one)
    slant = graph.node("Where", leans, slope, zero)
    return graph.node("Mul", slant, graph.node("Sub", y, middle))
