"""Deslanted images in TensorFlow Lite: exact sums of floats, and rows moved by looking up pixels.

Sums of moments have more bits than a float: they are written as digits, from −base/2 to base/2, of
which all products and sums are exact. Digits are rows, quantities columns. Floats of a whole number
so written have its sign, whatever rounding makes of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.deslant.integers import IntegerDeslant

# Whole numbers below are exact in floats.
_EXACT = 2**24
# How much larger than half the base a digit may stay.
_SLACK = 1.25
_SLANT, _PIXEL, _HALF = 4096, 256, 64


def emit(layer: IntegerDeslant, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of images without slant."""
    rows, columns, channels = layer.in_shape
    line = columns * channels
    image = graph.node("DEQUANTIZE", values, out=graph.tensor(values.shape, "float32"))
    lines = graph.reshaped(image, rows, line)
    start, right = _moves(layer, lines, graph)
    # 1) where both neighbors of each value are, in lines with a zero at both ends
    sides = graph.constant(np.array([[0, 0], [1, 1]], np.int32))
    wide = graph.node("PAD", lines, sides, out=graph.tensor((rows, line + 2), "float32"))
    flat = graph.reshaped(wide, rows * (line + 2))
    if channels > 1:
        start = graph.apply("MUL", start, graph.number(channels, "float32", 3))
    x = np.arange(line) + np.array([0, channels])[:, None, None]
    place = graph.apply("ADD", start, _floats(graph, x))
    place = graph.apply("MAXIMUM", place, graph.number(-1, "float32", 3))
    place = graph.apply("MINIMUM", place, graph.number(line, "float32", 3))
    first = 1 + (line + 2) * np.arange(rows).reshape(1, -1, 1)
    place = graph.apply("CAST", graph.apply("ADD", place, _floats(graph, first)), type="int32")
    # 2) their mean by how near they are; nothing is halfway between two bytes
    weights = graph.apply("MUL", right, _floats(graph, [[[-1]], [[1]]]))
    weights = graph.apply("ADD", weights, _floats(graph, [[[1]], [[0]]]))
    mean = graph.total(graph.apply("MUL", _taken(graph, flat, place), weights), 0)
    mean = graph.apply("ADD", mean, graph.number(1 / 512, "float32", 3))
    whole = graph.reshaped(mean, *values.shape)
    return graph.node("QUANTIZE", whole, out=graph.like_bytes(values.shape))


def _moves(layer: IntegerDeslant, lines: Tensor, graph: TfliteGraph) -> tuple[Tensor, Tensor]:
    """Return whole pixels that each row moves, and the part that is left, (1, rows, 1)."""
    rows, columns, channels = layer.in_shape
    line = 255 * channels * columns * max(1, columns - 1) // 2
    bits = _digit_bits(rows)
    if line >= _EXACT or bits < 4:
        raise InputError("image_shape", layer.in_shape, "smaller images, such as 128×128")
    moments = _moments(layer, lines, graph)
    products = _products(layer, moments, graph)
    slant, middle = _quotients(rows, products, graph)
    # The slant has two digits; the quotients have a half too much.
    y = np.arange(rows)
    coarse = _nearest(graph, slant)
    fine = graph.apply("SUB", slant, coarse)
    distance = graph.apply("SUB", _floats(graph, (_PIXEL * y + 0.5).reshape(1, -1, 1)), middle)
    low = graph.apply("FLOOR", graph.apply("MUL", fine, distance))
    move = graph.apply("ADD", graph.apply("MUL", coarse, distance), low)
    move = graph.apply("MUL", move, graph.number(1 / _HALF, "float32", 3))
    move = graph.apply("MUL", graph.apply("FLOOR", move), graph.number(1 / _PIXEL, "float32", 3))
    start = graph.apply("FLOOR", move)
    return start, graph.apply("SUB", move, start)


def _moments(layer: IntegerDeslant, lines: Tensor, graph: TfliteGraph) -> Tensor:
    """Return digits of mass, first, second, across, both, and first below zero, (n, 6)."""
    rows, columns, channels = layer.in_shape
    y = np.arange(rows)
    bits = _digit_bits(rows)
    line = 255 * channels * columns * max(1, columns - 1) // 2
    x = np.repeat(np.arange(columns), channels)
    of_rows = graph.apply_matrix(lines, np.stack([np.ones_like(x), x]))
    largest = 255 * columns * channels * max(int(np.sum(y * y)), rows) * max(1, columns)
    n_moments = math.ceil((math.log2(largest) + 1) / bits)
    zeros = _floats(graph, np.zeros((n_moments - 1, 2 * rows)))
    shape = (n_moments, 2 * rows)
    digits = graph.joined([graph.reshaped(of_rows, 1, 2 * rows), zeros], shape, 0)
    digits = _carried(graph, digits, bits, line)
    powers = np.zeros((6, rows, 2))
    powers[[0, 1, 2, 5], :, 0] = [y**0, y, y * y, -y]
    powers[[3, 4], :, 1] = [y**0, y]
    most = _SLACK * 2 ** (bits - 1)
    moments = graph.apply_matrix(digits, powers.reshape(6, -1))
    return _carried(graph, moments, bits, most * max(int(np.sum(y * y)), rows))


def _products(layer: IntegerDeslant, moments: Tensor, graph: TfliteGraph) -> Tensor:
    """Return digits of spread, lean, mass and first below zero, (n, 4): products of polynomials."""
    rows, columns, channels = layer.in_shape
    bits = _digit_bits(rows)
    n_moments = moments.shape[0]
    mass = 255 * rows * columns * channels
    n = math.ceil((2 * math.log2(mass * max(rows, columns)) + 1 + 13) / bits)
    zero = 6 * n_moments
    flat = graph.reshaped(moments, zero)
    flat = graph.joined([flat, _floats(graph, [0, 1])], (zero + 2,), 0)
    shift = np.arange(n)[:, None] - np.arange(n_moments)
    inside = (shift >= 0) & (shift < n_moments)
    left = np.hstack([np.where(inside, 6 * shift + column, zero) for column in (0, 5)])
    place = np.arange(n_moments)
    one = np.where(place == 0, zero + 1, zero)
    nothing = np.full(n_moments, zero)
    right = np.vstack(
        [
            np.stack([6 * place + 2, 6 * place + 4, one, nothing], 1),
            np.stack([6 * place + 1, 6 * place + 3, nothing, one], 1),
        ]
    )
    factors = [_taken(graph, flat, graph.constant(t.astype(np.int32))) for t in (left, right)]
    products = graph.product(*factors)
    most = _SLACK * 2 ** (bits - 1)
    return _carried(graph, products, bits, most**2 * 2 * n_moments)


def _quotients(rows: int, products: Tensor, graph: TfliteGraph) -> tuple[Tensor, Tensor]:
    """Return the slant, and the row of the center of mass, (1, 1) each."""
    # Quotients are of the slant, of the opposite one, and of the center.
    bits = _digit_bits(rows)
    n = products.shape[0]
    most = _SLACK * 2 ** (bits - 1)
    # 1) two candidates of each quotient
    dividends = [[0, _SLANT, 0, 0], [0, -_SLANT, 0, 0], [0, 0, 0, -_PIXEL]]
    divisors = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    dividend, divisor = (
        graph.apply_matrix(products, np.tile(table, (2, 1))) for table in (dividends, divisors)
    )
    weights = _floats(graph, 2.0 ** (bits * np.arange(n))[None])
    about = graph.product(weights, divisor)
    about = graph.apply("MAXIMUM", about, graph.number(1, "float32", 2))
    about = graph.apply("DIV", graph.product(weights, dividend), about)
    about = graph.apply("MAXIMUM", about, graph.number(1, "float32", 2))
    caps = [_SLANT - 1, _SLANT - 1, _PIXEL * rows]
    about = graph.apply("MINIMUM", about, _floats(graph, [caps * 2]))
    nearest = _nearest(graph, about)
    tried = graph.apply("ADD", nearest, _floats(graph, [[0, 0, 0, 1, 1, 1]]))
    rest = graph.apply("SUB", dividend, graph.apply("MUL", divisor, tried))
    rest = _carried(graph, rest, bits, most * max(2 * _SLANT, _PIXEL * (rows + 1)))
    # 2) half of each that is not too large, minus half of each that is, makes up the quotient
    sign = graph.apply("ADD", graph.product(weights, rest), graph.number(0.5, "float32", 2))
    sign = graph.apply("MINIMUM", sign, graph.number(0.5, "float32", 2))
    sign = graph.apply("MAXIMUM", sign, graph.number(-0.5, "float32", 2))
    found = graph.apply("ADD", graph.apply("ADD", tried, sign), sign)
    slant = graph.apply_matrix(found, np.array([[1, -1, 0] * 2]) / (2 * _HALF))
    middle = graph.apply_matrix(found, np.array([[0, 0, 1] * 2]) / 2)
    return slant, middle


def _digit_bits(rows: int) -> int:
    """Return the bits of a digit, so that sums over rows and all that quotients need are exact."""
    y = np.arange(rows)
    factor = max(int(np.sum(y * y)), 2 * _SLANT, _PIXEL * (rows + 1))
    return int(math.log2(_EXACT / (_SLACK * factor))) + 1


def _carried(graph: TfliteGraph, values: Tensor, bits: int, largest: float) -> Tensor:
    """Return digits at most a little larger than half the base, of digits up to ``largest``."""
    base = 2.0**bits
    n = values.shape[0]
    # The last digit stays as it is.
    table = np.eye(n, k=-1) - base * np.diag(np.arange(n) < n - 1)
    while largest > _SLACK * base / 2:
        carry = graph.apply("MUL", values, graph.number(1 / base, "float32", 2))
        last = base / 2 + math.ceil(largest / base) <= _SLACK * base / 2
        whole = _nearest(graph, carry) if last else graph.apply("FLOOR", carry)
        moved = graph.product(_floats(graph, table), whole)
        values = graph.apply("ADD", values, moved)
        largest = base / (2 if last else 1) + math.ceil(largest / base)
    return values


def _nearest(graph: TfliteGraph, values: Tensor) -> Tensor:
    """Return (m, n) floats rounded, halves up."""
    return graph.apply("FLOOR", graph.apply("ADD", values, graph.number(0.5, "float32", 2)))


def _taken(graph: TfliteGraph, values: Tensor, places: Tensor) -> Tensor:
    """Return the values at places of a list."""
    out = graph.tensor(places.shape, "float32")
    return graph.node("GATHER", values, places, out=out, options=[np.int32(0)])


def _floats(graph: TfliteGraph, values: object) -> Tensor:
    return graph.constant(np.array(values, np.float32))
