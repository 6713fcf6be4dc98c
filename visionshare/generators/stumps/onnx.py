"""Stumps in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.stumps.family import Stumps


def emit(family: Stumps, graph: Graph) -> str:
    """Return the chosen stumps, compared exactly as the library compares them."""
    values = graph.pixels(family.inputs_)
    limits = family.thresholds_
    if graph.bytes:
        # The largest byte at or below the threshold, -1 for none: v / 255 is no float32.
        steps = np.arange(256) / 255
        limits = np.searchsorted(steps, limits.astype(np.float64), side="right") - 1
        values = graph.floats(values)
    within = graph.node("LessOrEqual", values, graph.constant(limits.astype(np.float32)))
    return graph.floats(within)
