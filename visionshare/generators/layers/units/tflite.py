"""Units in TensorFlow Lite: a convolution with filters of the image's size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.generators.layers.integers.kernels import SQUARE_SHIFT
from visionshare.generators.layers.integers.tflite import sums

if TYPE_CHECKING:
    from visionshare.codegen.tflite_graph import Tensor, TfliteGraph
    from visionshare.generators.layers.units.integers import IntegerUnits


def emit(layer: IntegerUnits, values: Tensor, graph: TfliteGraph) -> Tensor:
    """Return the bytes of the units, (1, 1, 1, n_units)."""
    weights = layer.weights.reshape(-1, *layer.in_shape)
    found = sums(layer, weights, values, graph, signed=layer.square)
    if not layer.square:
        return found
    # The scale of the result is the shift of a product.
    out = graph.tensor(found.shape, "int8", 2**SQUARE_SHIFT, -128)
    return graph.node("MUL", found, found, out=out)
