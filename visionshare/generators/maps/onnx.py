"""Learned maps in ONNX: one convolution, maxima of cells, and another family's features on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.maps.family import LearnedMaps

__all__ = ["emit"]


def emit(family: LearnedMaps, graph: Graph) -> str:
    """Return the features of the family on the maps, which are floats whatever the images are."""
    taps = graph.constant(family.templates_.transpose(0, 3, 1, 2))
    pool, side = family.pool, [family.size, family.size]
    maps = graph.node(
        "Conv", graph.raster(), taps, graph.constant(family.biases_),
        kernel_shape=side, pads=[family.padding] * 4,
    )  # fmt: skip
    if pool > 1:
        # Rows and columns that fill no cell are left out.
        maps = graph.node("MaxPool", maps, kernel_shape=[pool, pool], strides=[pool, pool])
    maps = graph.node("Transpose", graph.node("Relu", maps), perm=[0, 2, 3, 1])
    return graph.add_on(maps, family.part_, pixel="float32")
