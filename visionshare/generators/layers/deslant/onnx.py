"""Deslanted images in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.deslant.integers import IntegerDeslant
    from visionshare.generators.layers.deslant.layer import DeslantLayer


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


def emit_integers(layer: IntegerDeslant, values: str, graph: Graph) -> str:
    """Return images without slant."""
    _, cols, channels = layer.in_shape
    moves = _whole_moves(layer, values, graph)
    one = graph.constant(np.int64(256))
    right = graph.node("Mod", moves, one)
    whole = graph.node("Div", graph.node("Sub", moves, right), one)
    left = graph.node("Sub", one, right)
    # What moves in from beyond an edge is a column of zeros.
    sides = graph.constant(np.array([0, 0, 1, 0, 0, 0, 1, 0]))
    wide = graph.node("Pad", values, sides, graph.constant(np.float32(0)))
    value = graph.constant(np.float32(128))
    for step, weight in ((0, left), (1, right)):
        x = graph.constant(np.arange(cols).reshape(cols, 1) + step + 1)
        column = graph.node("Add", whole, x)
        bounds = (graph.constant(np.int64(0)), graph.constant(np.int64(cols + 1)))
        column = graph.node("Min", graph.node("Max", column, bounds[0]), bounds[1])
        if channels > 1:
            column = graph.node("Expand", column, graph.constant(np.array([1, 1, 1, channels])))
        pixels = graph.node("GatherElements", wide, column, axis=2)
        value = graph.node("Add", value, graph.node("Mul", graph.floats(weight), pixels))
    scale = graph.constant(np.float32(1 / 256))
    return graph.node("Floor", graph.node("Mul", value, scale))


def _whole_moves(layer: IntegerDeslant, values: str, graph: Graph) -> str:
    """Return by how much each row moves, in 256ths of a pixel, (n, rows, 1, 1), int64."""
    rows, cols, _ = layer.in_shape

    def total(of: str, *axes: int) -> str:
        return graph.node("ReduceSum", of, graph.constant(np.array(axes)), keepdims=1)

    def times(a: str, b: str) -> str:
        return graph.node("Mul", a, b)

    def number(value: int) -> str:
        return graph.constant(np.int64(value))

    y = graph.constant(np.arange(rows).reshape(rows, 1, 1))
    x = graph.constant(np.arange(cols).reshape(cols, 1))
    weight = total(graph.cast(values, "INT64"), 3)
    row = total(weight, 2)
    moment = total(times(weight, x), 2)
    mass = total(row, 1)
    across = total(moment, 1)
    first, both = (total(times(sums, y), 1) for sums in (row, moment))
    second = total(times(times(row, y), y), 1)
    spread = graph.node("Sub", times(second, mass), times(first, first))
    lean = graph.node("Sub", times(both, mass), times(across, first))
    some = graph.node("Greater", spread, number(0))
    divisor = graph.node("Where", some, spread, number(1))
    size = graph.node("Abs", lean)
    steep = graph.node("Not", graph.node("Less", size, spread))
    slant = number(0)
    rest = graph.node("Where", steep, number(0), size)
    # Four bits of the quotient at a time: twelve could leave 64 bits.
    for _ in range(3):
        rest = times(rest, number(16))
        digit = graph.node("Div", rest, divisor)
        rest = graph.node("Sub", rest, times(digit, divisor))
        slant = graph.node("Add", times(slant, number(16)), digit)
    slant = graph.node("Where", steep, number(4096), slant)
    slant = graph.node(
        "Where", graph.node("Less", lean, number(0)), graph.node("Neg", slant), slant
    )
    slant = graph.node("Where", some, slant, number(0))
    filled = graph.node("Where", graph.node("Greater", mass, number(0)), mass, number(1))
    middle = graph.node("Div", times(first, number(256)), filled)
    move = times(slant, graph.node("Sub", times(y, number(256)), middle))
    return graph.node(
        "Div", graph.node("Sub", move, graph.node("Mod", move, number(4096))), number(4096)
    )
