"""Depthwise templates in ONNX: a convolution in groups, and maxima of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.generators.layers.templates.onnx import cell_maxima

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.layers.depthwise.layer import DepthwiseLayer

__all__ = ["emit"]


def emit(layer: DepthwiseLayer, images: str, graph: Graph) -> str:
    """Return the maxima (n, rows, columns, n_templates), float32."""
    raster = graph.unit_range(graph.node("Transpose", images, perm=[0, 3, 1, 2]))
    # One channel for each template.
    raster = graph.node("Gather", raster, graph.constant(layer.sources), axis=1)
    n, q = layer.templates.shape[:2]
    pad_y, pad_x = layer.pads
    responses = graph.node(
        "Conv",
        raster,
        graph.constant(layer.templates.transpose(0, 3, 1, 2)),
        graph.constant(layer.biases),
        kernel_shape=[q, q],
        pads=[pad_y, pad_x, pad_y, pad_x],
        group=n,
    )
    maxima = cell_maxima(responses, layer.row_cells, layer.col_cells, graph)
    return graph.node("Transpose", graph.node("Relu", maxima), perm=[0, 2, 3, 1])
