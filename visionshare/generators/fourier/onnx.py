"""Random Fourier features in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.fourier.family import RandomFourier

__all__ = ["emit"]


def emit(family: RandomFourier, graph: Graph) -> str:
    """Return the chosen cosines and sines; inputs that are always 0 are left out."""
    # With no input at all phases are 0, which one of them gives too.
    used = np.flatnonzero(family.input_scale_) if family.input_scale_.any() else np.array([0])
    inputs = graph.inputs(used, family.input_offset_, family.input_scale_)
    parts = []
    for part, function in enumerate(("Cos", "Sin")):
        places = np.flatnonzero(family.ids_ % 2 == part)
        if len(places):
            frequencies = family.frequencies_[family.ids_[places] // 2][:, used]
            weights = graph.constant(frequencies.T.astype(np.float64))
            phases = graph.node("MatMul", inputs, weights)
            parts.append((graph.floats(graph.node(function, phases)), places))
    return graph.joined(parts)
