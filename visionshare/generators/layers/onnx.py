"""Networks in ONNX: the nodes of one layer after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.integers.onnx import as_whole

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.layer import LayerList


def emit(network: LayerList, graph: Graph) -> str:
    """Return the name of the features (n, n_features), float32."""
    before = graph.images, graph.shape, graph.pixel
    first = np.array([0, *network.layers_[0].in_shape])
    values = graph.node("Reshape", graph.images, graph.constant(first))
    if network.in_whole_numbers:
        values = as_whole(values, graph)
        graph.pixel = "float32"
    try:
        for layer in network.layers_:
            graph.images = values
            graph.shape = layer.in_shape
            values = layer.to_onnx(values, graph)
            if not layer.keeps_bytes:
                graph.pixel = "float32"
        size = int(np.prod(network.layers_[-1].out_shape))
        flat = graph.node("Reshape", values, graph.constant(np.array([0, size])))
        if graph.bytes:
            flat = graph.unit_range(flat)
        return graph.take(flat, network.places_, size)
    finally:
        graph.images, graph.shape, graph.pixel = before
