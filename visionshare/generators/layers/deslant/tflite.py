"""Deslanted images in TensorFlow Lite: moments in 64 bits, and rows moved by small matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.deslant.integers import IntegerDeslant


def emit(layer: IntegerDeslant, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of images without slant."""
    rows, columns, channels = layer.in_shape
    image = graph.node("DEQUANTIZE", values, out=graph.tensor(values.shape, "float32"))
    moves = graph.apply("CAST", _moves(layer, image, graph), type="float32")
    # What a pixel gives to a place falls to zero a whole pixel away: out = Σ weight · pixel.
    x = np.arange(columns)
    distances = graph.constant((256.0 * (x[:, None] - x)).astype(np.float32)[None])
    one = graph.number(256, "float32", 3)
    far = graph.apply("ABS", graph.apply("ADD", distances, moves))
    weights = graph.apply("RELU", graph.apply("SUB", one, far))
    lines = graph.reshaped(image, rows, columns, channels)
    shape = (rows, columns, channels)
    out = graph.tensor(shape, "float32")
    total = graph.node("BATCH_MATMUL", weights, lines, out=out)
    half = graph.apply("ADD", total, graph.number(128, "float32", 3))
    scaled = graph.apply("MUL", half, graph.number(1 / 256, "float32", 3))
    whole = graph.reshaped(graph.apply("FLOOR", scaled), *values.shape)
    return graph.node("QUANTIZE", whole, out=graph.like_bytes(values.shape))


def _moves(layer: IntegerDeslant, image: Tensor, graph: TfliteGraph) -> Tensor:
    """Return by how much each row moves, in 256ths of a pixel, (rows, 1, 1), int32."""
    rows, columns, _ = layer.in_shape

    def wide(values: Tensor) -> Tensor:
        return graph.apply("CAST", values, type="int64")

    def times(a: Tensor, b: Tensor) -> Tensor:
        return graph.apply("MUL", a, b)

    def less(a: Tensor, b: Tensor) -> Tensor:
        return graph.apply("SUB", a, b)

    # 1) moments: those of a row are exact in floats
    x = graph.constant(np.arange(columns, dtype=np.float32).reshape(1, 1, -1, 1))
    y = graph.constant(np.arange(rows).reshape(1, -1, 1, 1))
    weight = graph.total(image, 3)
    row = wide(graph.total(weight, 2))
    moment = wide(graph.total(times(weight, x), 2))
    mass, first, across, both, second = (
        graph.total(sums, 1)
        for sums in (row, times(row, y), moment, times(moment, y), times(times(row, y), y))
    )
    # 2) the slant, in 4096ths: three digits of 4 bits, the first of which may be 16
    one = graph.number(1, "int64")
    spread = graph.apply("MAXIMUM", less(times(second, mass), times(first, first)), one)
    lean = less(times(both, mass), times(across, first))
    opposite = less(times(across, first), times(both, mass))
    rest = graph.apply("MINIMUM", graph.apply("MAXIMUM", lean, opposite), spread)
    size, rest = _digit(rest, spread, 16, graph)
    for _ in range(2):
        digit, rest = _digit(rest, spread, 16, graph)
        sixteen = graph.number(16, "int32")
        size = graph.apply("ADD", times(size, sixteen), digit)
    leans = graph.apply("GREATER_EQUAL", lean, opposite, type="bool")
    sign = graph.apply("CAST", leans, type="int32")
    two = graph.number(2, "int32")
    narrow = graph.number(1, "int32")
    slant = times(size, less(times(two, sign), narrow))
    # 3) the row of the center of mass, in 256ths
    filled = graph.apply("MAXIMUM", mass, one)
    middle, rest = _digit(first, filled, rows, graph, 1)
    part, _ = _digit(rest, filled, 256, graph)
    whole = graph.number(256, "int32")
    middle = graph.apply("ADD", times(middle, whole), part)
    # 4) what each row moves
    places = graph.constant((256 * np.arange(rows, dtype=np.int32)).reshape(-1, 1, 1))
    flat = [graph.reshaped(values, 1, 1, 1) for values in (slant, middle)]
    move = times(flat[0], less(places, flat[1]))
    return graph.apply("FLOOR_DIV", move, graph.number(4096, "int32", 3))


def _digit(
    dividend: Tensor, divisor: Tensor, most: int, graph: TfliteGraph, factor: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return ⌊dividend · most / divisor⌋, at most ``most``, and what is left."""
    # There is no division of 64 bits: multiples of the divisor are counted.
    scale = graph.number(factor or most, "int64")
    scaled = graph.apply("MUL", dividend, scale)
    numbers = graph.constant(np.arange(1, most + 1).reshape(1, 1, 1, -1))
    multiples = graph.apply("MUL", divisor, numbers)
    reached = graph.apply("GREATER_EQUAL", scaled, multiples, type="bool")
    digit = graph.total(graph.apply("CAST", reached, type="int32"), 3)
    used = graph.apply("MUL", graph.apply("CAST", digit, type="int64"), divisor)
    return digit, graph.apply("SUB", scaled, used)
