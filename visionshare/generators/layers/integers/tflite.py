"""Weighted sums in TensorFlow Lite: convolutions whose scales are powers of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.integer_layer import WeightedIntegerLayer

_SAME, _VALID = np.int8(0), np.int8(1)


def sums(
    layer: WeightedIntegerLayer,
    weights: np.ndarray,
    values: Tensor,
    graph: TfliteGraph,
    same: bool = False,
    signed: bool = False,
    step: int = 1,
) -> Tensor:
    """Return the rounded sums of weights (n, rows, columns, depth) that slide over bytes."""
    # Runtimes round halves to even, up, or twice. Four times a sum, plus one, is never halfway
    # between two bytes, so that all round it alike; where eight bits hold four times the weights.
    n, rows, columns, depth = weights.shape
    four = 4 if 4 * np.abs(weights.astype(np.int64)).max() <= 127 else 1
    # Where nothing is shifted nothing is rounded.
    odd = np.where((layer.shifts > 0) & (four == 4), 1, 0)
    biases = (layer.biases * four + odd).astype(np.int32)
    scales = np.ldexp(1 / four, -layer.shifts.astype(np.int64))
    unit = values.scale
    height, width = values.shape[1:3]
    if not same:
        height -= rows - 1
        width -= columns - 1
    shape = (1, -(-height // step), -(-width // step), n)
    out = graph.tensor(shape, "int8", 1) if signed else graph.like_bytes(shape)
    options = [_SAME if same else _VALID, np.int32(step), np.int32(step)]
    taps = (weights * four).astype(np.int8)
    operator, axis = "CONV_2D", 0
    if depth == 1 and values.shape[3] == n > 1:
        operator, axis = "DEPTHWISE_CONV_2D", 3
        options.append(np.int32(1))
        taps = taps.transpose(3, 1, 2, 0)
    filters = graph.constant(taps, scales / unit, axis=axis)
    added = graph.constant(biases, scales)
    return graph.node(operator, values, filters, added, out=out, options=options)
