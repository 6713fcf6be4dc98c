"""Networks of :mod:`benchmarks.layers` in ONNX, run by onnxruntime on one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.layers import Layer, Shape, shapes, weight_shape

__all__ = ["network_session", "onnx_network", "random_weights"]

Weights = Mapping[str, np.ndarray]


def random_weights(layers: Sequence[Layer], shape: Shape) -> dict[str, np.ndarray]:
    """Return weights to time a network by: its cost does not depend on them."""
    rng, weights = np.random.default_rng(0), {}
    for i, (layer, before) in enumerate(zip(layers, shapes(layers, shape), strict=False)):
        if of_layer := weight_shape(layer, before):
            weights[f"{i}.weight"] = rng.normal(0, 0.1, of_layer).astype(np.float32)
            weights[f"{i}.bias"] = rng.normal(0, 0.1, of_layer[0]).astype(np.float32)
    return weights


def _operator(layer: Layer, before: Shape) -> tuple[str, dict[str, Any]]:
    """Return the operator of a layer and its settings."""
    sides = {"kernel_shape": [layer.side] * 2, "strides": [layer.stride] * 2}
    if layer.kind == "maximum":
        return "MaxPool", sides
    if layer.kind == "mean":
        return "GlobalAveragePool", {}
    if layer.kind == "dense":
        return "Gemm", {"transB": 1}
    group = before[0] if layer.kind == "depthwise" else 1
    return "Conv", {**sides, "pads": [layer.padding] * 4, "group": group}


def onnx_network(layers: Sequence[Layer], shape: Shape, weights: Weights) -> bytes:
    """Return a network from ``image``, (n, C, H, W), to scores (n, classes).

    ``weights`` has ``I.weight`` and ``I.bias`` of each layer I that has some, with its
    normalization folded in.
    """
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []

    def add(operator: str, target: str, *inputs: str, **settings: Any) -> None:
        last = nodes[-1].output[0] if nodes else "image"
        nodes.append(helper.make_node(operator, [last, *inputs], [target], **settings))

    found = shapes(layers, shape)
    for i, (layer, before) in enumerate(zip(layers, found, strict=False)):
        inputs = [f"{i}.weight", f"{i}.bias"] if weight_shape(layer, before) else []
        operator, settings = _operator(layer, before)
        if layer.kind == "dense":
            add("Flatten", f"{i}.flat")
        add(operator, f"{i}.out", *inputs, **settings)
        if layer.rectified:
            add("Relu", f"{i}.relu")
    tensors = [
        numpy_helper.from_array(np.asarray(values, np.float32), name)
        for name, values in weights.items()
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", *shape])
    last = nodes[-1].output[0]
    scores = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", found[-1][0]])
    graph = helper.make_graph(nodes, "network", [image], [scores], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    return bytes(model.SerializeToString())


def network_session(network: bytes) -> Any:
    """Return a session of onnxruntime on one thread; its input is named ``image``."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(network, settings, providers=["CPUExecutionProvider"])
