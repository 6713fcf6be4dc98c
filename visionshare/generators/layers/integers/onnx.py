"""Features in whole numbers in ONNX: floats that hold whole numbers, exact up to 2^24."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.integer_layer import WeightedIntegerLayer

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


def check_exact(layer: WeightedIntegerLayer, added: int = 0) -> None:
    """Check that floats hold all sums exactly."""
    weights = layer.weights.reshape(len(layer.weights), -1)
    sums = 255 * np.abs(weights).sum(axis=1) + np.abs(layer.biases) + added
    if sums.max() > _LARGEST_EXACT:
        given = f"sums up to {int(sums.max())}"
        raise InputError("family", given, f"sums up to {_LARGEST_EXACT} for ONNX")


def rounded(sums: str, shifts: np.ndarray, limits: tuple[int, int], graph: Graph) -> str:
    """Return sums divided by 2^shifts, to the nearest, halves up, and cut off."""
    scales = graph.constant(np.ldexp(np.float32(1), -shifts).astype(np.float32))
    halves = graph.constant(np.float32(0.5))
    scaled = graph.node("Add", graph.node("Mul", sums, scales), halves)
    low, high = (graph.constant(np.float32(limit)) for limit in limits)
    return graph.node("Clip", graph.node("Floor", scaled), low, high)
