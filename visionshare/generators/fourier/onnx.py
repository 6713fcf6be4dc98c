"""Random Fourier features in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.fourier.family import RandomFourier


def emit(family: RandomFourier, graph: Graph) -> str:
    """Return the chosen cosines and sines; inputs that are always 0 are omitted."""
    # Where all scales are 0 one input gives the phases, which are 0 too.
    indices = np.flatnonzero(family.input_scale_) if family.input_scale_.any() else np.array([0])
    inputs = graph.inputs(indices, family.input_offset_, family.input_scale_)
    weights = family.frequencies_[family.ids_ // 2][:, indices].T.astype(np.float64)
    phases = graph.node("MatMul", inputs, graph.constant(weights))
    # cos(x) = sin(x + π/2): onnxruntime before 1.24 has no cosine of float64.
    shifts = graph.constant(np.where(family.ids_ % 2 == 0, np.pi / 2, 0.0))
    return graph.floats(graph.node("Sin", graph.node("Add", phases, shifts)))
