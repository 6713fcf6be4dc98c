"""Features in whole numbers in ONNX: floats that hold whole numbers, exact up to 2^24."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.depthwise.integers import IntegerDepthwise
from visionshare.generators.layers.residual.integers import IntegerResidual
from visionshare.generators.layers.residual.onnx import skipped
from visionshare.generators.layers.templates.onnx import largest_responses

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.deslant.integers import IntegerDeslant
    from visionshare.generators.layers.integer_layer import WeightedIntegerLayer
    from visionshare.generators.layers.templates.integers import IntegerTemplates
    from visionshare.generators.layers.units.integers import IntegerUnits

__all__ = ["as_whole", "deslanted", "templates", "units"]

_LARGEST_EXACT = 2**24


def as_whole(images: str, graph: Graph) -> str:
    """Return pixels as floats that hold bytes."""
    if graph.bytes:
        return graph.floats(images)
    low = graph.constant(np.float32(0))
    high = graph.constant(np.float32(1))
    clipped = graph.node("Clip", images, low, high)
    scaled = graph.node("Mul", clipped, graph.constant(np.float32(255)))
    return graph.node("Floor", graph.node("Add", scaled, graph.constant(np.float32(0.5))))


def _check_exact(layer: WeightedIntegerLayer, added: int = 0) -> None:
    """Check that floats hold all sums exactly."""
    weights = layer.weights.reshape(len(layer.weights), -1)
    sums = 255 * np.abs(weights).sum(axis=1) + np.abs(layer.biases) + added
    if sums.max() > _LARGEST_EXACT:
        given = f"sums up to {int(sums.max())}"
        raise InputError("family", given, f"sums up to {_LARGEST_EXACT} for ONNX")


def units(layer: IntegerUnits, values: str, graph: Graph) -> str:
    """Return units of bytes, as floats (n, 1, 1, n_units)."""
    _check_exact(layer)
    n, n_inputs = layer.weights.shape
    flat = graph.node("Reshape", values, graph.constant(np.array([0, n_inputs])))
    weights = graph.constant(layer.weights.astype(np.float32))
    biases = graph.constant(layer.biases.astype(np.float32))
    sums = graph.node("Gemm", flat, weights, biases, transB=1)
    if layer.square:
        roots = _rounded(sums, layer.shifts, (-127, 127), graph)
        found = _rounded(graph.node("Mul", roots, roots), np.full(n, 6), (0, 255), graph)
    else:
        found = _rounded(sums, layer.shifts, (0, 255), graph)
    return graph.node("Reshape", found, graph.constant(np.array([0, 1, 1, n])))


def templates(layer: IntegerTemplates, values: str, graph: Graph) -> str:
    """Return maxima of responses in cells, (n, cell rows, cell columns, templates), as floats."""
    added = ""
    if isinstance(layer, IntegerResidual):
        _check_exact(layer, layer.most_added)
        factors = np.ldexp(np.float32(1), layer.lifts).astype(np.float32)
        added = graph.node("Mul", skipped(layer, values, graph), graph.constant(factors))
    else:
        _check_exact(layer)
    taps = layer.weights.astype(np.float32)
    groups = 1
    if isinstance(layer, IntegerDepthwise):
        # One channel for each template.
        values = graph.node("Gather", values, graph.constant(layer.sources), axis=3)
        groups = len(taps)
    maxima = largest_responses(layer, taps, layer.biases, values, graph, groups)
    if added:
        maxima = graph.node("Add", graph.node("Relu", maxima), added)
    return _rounded(maxima, layer.shifts, (0, 255), graph)


def _rounded(sums: str, shifts: np.ndarray, limits: tuple[int, int], graph: Graph) -> str:
    """Return sums divided by 2^shifts, to the nearest, halves up, and cut off."""
    scales = graph.constant(np.ldexp(np.float32(1), -shifts).astype(np.float32))
    halves = graph.constant(np.float32(0.5))
    scaled = graph.node("Add", graph.node("Mul", sums, scales), halves)
    low, high = (graph.constant(np.float32(limit)) for limit in limits)
    return graph.node("Clip", graph.node("Floor", scaled), low, high)


def deslanted(layer: IntegerDeslant, values: str, graph: Graph) -> str:
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
