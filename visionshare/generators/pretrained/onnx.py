"""Pretrained networks in ONNX: preparation, network and pooled activations in one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.codegen.onnx_graph import require_onnx
from visionshare.errors import InputError

if TYPE_CHECKING:
    from visionshare.codegen.onnx_graph import Graph
    from visionshare.generators.pretrained.family import PretrainedNetwork


# Of the exported graph, see `visionshare.export.onnx.model`.
_OPSET = 18


def emit(family: PretrainedNetwork, graph: Graph) -> str:
    """Return the chosen activations; the network is cut at the deepest place."""
    places, numbers = family.used_places()
    content, widths = family.part(places)[:2]
    columns = _add_network(graph, content, _prepared(family, graph))
    together = columns[0]
    if len(columns) > 1:
        together = graph.node("Concat", *columns, axis=1)
    chosen = graph.take(together, numbers, sum(widths))
    if family.power == 1:
        return chosen
    size = graph.node("Pow", graph.node("Abs", chosen), graph.constant(np.float32(family.power)))
    return graph.node("Mul", graph.node("Sign", chosen), size)


def _prepared(family: PretrainedNetwork, graph: Graph) -> str:
    """Return the images as the network takes them, (n, C, size, size)."""
    # 1) bytes, as float32
    pixels = graph.floats(graph.planes())
    scale = 1 if graph.bytes else 255
    # 2) a resize is linear along rows and along columns
    sides = (family.image_shape_[0], family.image_shape_[1])
    if sides != (family.size, family.size):
        rows, cols = family.resizing()
        pixels = graph.node("MatMul", graph.constant(rows), pixels)
        pixels = graph.node("MatMul", pixels, graph.constant(np.ascontiguousarray(cols.T)))
    # 3) gray from color or color from gray, mean and deviation: one convolution of single pixels
    mean, std = family.normalization()
    n_channels = family.image_shape_[2] if len(family.image_shape_) > 2 else 1
    mixed = np.eye(n_channels)
    if n_channels != len(mean):
        mixed = np.full((len(mean), n_channels), 1 / n_channels)
    weights = (scale * mixed / std[:, None]).astype(np.float32)[:, :, None, None]
    shift = graph.constant((-mean / std).astype(np.float32))
    return graph.node("Conv", pixels, graph.constant(weights), shift, kernel_shape=[1, 1])


def _add_network(graph: Graph, content: bytes, images: str) -> list[str]:
    """Add a network that takes these images; return the names of its outputs."""
    onnx = require_onnx()
    model: Any = onnx.load_from_string(content)
    if model.opset_import[0].version != _OPSET:
        try:
            model = onnx.version_converter.convert_version(model, _OPSET)
        except Exception as error:
            accepted = f"a network that can be converted to opset {_OPSET}"
            raise InputError("network", str(error)[:200], accepted) from None
    given = model.graph
    names = {
        tensor.name: graph.constant(onnx.numpy_helper.to_array(tensor))
        for tensor in given.initializer
    }
    names[next(one.name for one in given.input if one.name not in names)] = images
    names[""] = ""
    prefix = f"network_{len(graph.nodes)}"
    for node in given.node:
        names |= {output: f"{prefix}/{output}" for output in node.output}
        added = onnx.NodeProto()
        added.CopyFrom(node)
        added.name = f"node_{len(graph.nodes)}"
        added.input[:] = [names[name] for name in node.input]
        added.output[:] = [names[name] for name in node.output]
        graph.nodes.append(added)
    return [names[output.name] for output in given.output]
