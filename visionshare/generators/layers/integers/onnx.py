"""Features in whole numbers in ONNX: floats that hold whole numbers, exact up to 2^24."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.deslant.integers import IntegerDeslant
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.generators.layers.units.integers import IntegerUnits

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.network import Network

__all__ = ["applied", "as_whole", "emit"]

_LARGEST_EXACT = 2**24


def emit(family: Network, graph: Graph) -> str:
    """Return the features: layers of images (n, H, W, C) of whole numbers, then those chosen."""
    images = graph.node("Reshape", graph.images, graph.constant(_many(family.layers_[0].in_shape)))
    values = as_whole(images, graph)
    for layer in family.layers_:
        values = applied(layer, values, graph)
    size = int(np.prod(family.layers_[-1].out_shape))
    flat = graph.node("Reshape", values, graph.constant(np.array([0, size])))
    return graph.take(flat, family.places_, size)


def _many(shape: tuple[int, ...]) -> np.ndarray:
    return np.array([0, *shape])


def as_whole(images: str, graph: Graph) -> str:
    """Return pixels as floats that hold bytes."""
    if graph.bytes:
        return graph.floats(images)
    low, high = graph.constant(np.float32(0)), graph.constant(np.float32(1))
    clipped = graph.node("Clip", images, low, high)
    scaled = graph.node("Mul", clipped, graph.constant(np.float32(255)))
    return graph.node("Floor", graph.node("Add", scaled, graph.constant(np.float32(0.5))))


def applied(layer: Any, values: str, graph: Graph) -> str:
    """Return the bytes that a layer makes of bytes, as floats."""
    if isinstance(layer, IntegerDeslant):
        return _deslanted(layer, values, graph)
    if not isinstance(layer, (IntegerTemplates, IntegerUnits)):
        raise InputError("family", type(layer).__name__, "a layer that can be written as ONNX")
    n = len(layer.weights)
    sums = 255 * np.abs(layer.weights.reshape(n, -1)).sum(axis=1) + np.abs(layer.biases)
    if sums.max() > _LARGEST_EXACT:
        given = f"sums up to {int(sums.max())}"
        raise InputError("family", given, f"sums up to {_LARGEST_EXACT} for ONNX")
    biases = graph.constant(layer.biases.astype(np.float32))
    if isinstance(layer, IntegerTemplates):
        return _cells(layer, values, biases, graph)
    flat = graph.node("Reshape", values, graph.constant(np.array([0, layer.weights.shape[1]])))
    weights = graph.constant(layer.weights.astype(np.float32))
    responses = graph.node("Gemm", flat, weights, biases, transB=1)
    if layer.square:
        roots = _rounded(responses, layer.shifts, (-127, 127), graph)
        squares = graph.node("Mul", roots, roots)
        units = _rounded(squares, np.full(n, 6), (0, 255), graph)
    else:
        units = _rounded(responses, layer.shifts, (0, 255), graph)
    return graph.node("Reshape", units, graph.constant(_many(layer.out_shape)))


def _cells(layer: IntegerTemplates, values: str, biases: str, graph: Graph) -> str:
    """Return maxima of responses in cells, (n, cell rows, cell columns, templates)."""
    raster = graph.node("Transpose", values, perm=[0, 3, 1, 2])
    taps = graph.constant(layer.weights.transpose(0, 3, 1, 2).astype(np.float32))
    q, (pad_y, pad_x) = layer.weights.shape[1], layer.pads
    responses = graph.node(
        "Conv", raster, taps, biases, kernel_shape=[q, q], pads=[pad_y, pad_x, pad_y, pad_x]
    )
    for axis, cells in ((2, layer.row_cells), (3, layer.col_cells)):
        along = graph.constant(np.array([axis]))
        parts = []
        for cell in range(int(cells.max()) + 1):
            (positions,) = np.nonzero(cells == cell)
            own = graph.node("Gather", responses, graph.constant(positions), axis=axis)
            parts.append(graph.node("ReduceMax", own, along, keepdims=1))
        responses = graph.node("Concat", *parts, axis=axis)
    maxima = graph.node("Transpose", responses, perm=[0, 2, 3, 1])
    return _rounded(maxima, layer.shifts, (0, 255), graph)


def _rounded(sums: str, shifts: np.ndarray, limits: tuple[int, int], graph: Graph) -> str:
    """Return sums divided by 2^shifts, to the nearest, halves up, and cut off."""
    scales = graph.constant(np.ldexp(np.float32(1), -shifts).astype(np.float32))
    halves = graph.constant(np.float32(0.5))
    scaled = graph.node("Add", graph.node("Mul", sums, scales), halves)
    low, high = (graph.constant(np.float32(limit)) for limit in limits)
    return graph.node("Clip", graph.node("Floor", scaled), low, high)


def _deslanted(layer: IntegerDeslant, values: str, graph: Graph) -> str:
    """Return images without slant."""
    _, cols, channels = layer.in_shape
    moves = _moves(layer, values, graph)
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


def _moves(layer: IntegerDeslant, values: str, graph: Graph) -> str:
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
    row, moment = total(weight, 2), total(times(weight, x), 2)
    mass, across = total(row, 1), total(moment, 1)
    first, both = (total(times(sums, y), 1) for sums in (row, moment))
    second = total(times(times(row, y), y), 1)
    spread = graph.node("Sub", times(second, mass), times(first, first))
    lean = graph.node("Sub", times(both, mass), times(across, first))
    some = graph.node("Greater", spread, number(0))
    divisor = graph.node("Where", some, spread, number(1))
    size = graph.node("Abs", lean)
    steep = graph.node("Not", graph.node("Less", size, spread))
    slant, rest = number(0), graph.node("Where", steep, number(0), size)
    # Four bits of the quotient at a time: twelve could leave 64 bits.
    for _ in range(3):
        rest = times(rest, number(16))
        digit = graph.node("Div", rest, divisor)
        rest = graph.node("Sub", rest, times(digit, divisor))
        slant = graph.node("Add", times(slant, number(16)), digit)
    slant = graph.node("Where", steep, number(4096), slant)
    slant = graph.node("Where", graph.node("Less", lean, number(0)),
                       graph.node("Neg", slant), slant)  # fmt: skip
    slant = graph.node("Where", some, slant, number(0))
    filled = graph.node("Where", graph.node("Greater", mass, number(0)), mass, number(1))
    middle = graph.node("Div", times(first, number(256)), filled)
    move = times(slant, graph.node("Sub", times(y, number(256)), middle))
    return graph.node("Div", graph.node("Sub", move, graph.node("Mod", move, number(4096))),
                      number(4096))  # fmt: skip
