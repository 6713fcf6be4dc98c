"""Networks of :mod:`benchmarks.layers` in ONNX, run by onnxruntime on one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.layers import Layer, Shape, branches, shapes, weight_shape

__all__ = ["BRANCHES", "network_session", "onnx_network", "random_weights"]

# Names of the summands of a residual sum.
BRANCHES = ("branch", "around")

Weights = Mapping[str, np.ndarray]


def random_weights(layers: Sequence[Layer], shape: Shape) -> dict[str, np.ndarray]:
    """Return weights to time a network by: its cost does not depend on them."""
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}
    for i, (layer, before) in enumerate(zip(layers, shapes(layers, shape), strict=False)):
        for name, part in zip(BRANCHES, branches(layer, before), strict=False):
            inside = random_weights(part, before)
            weights |= {f"{i}.{name}.{key}": values for key, values in inside.items()}
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

    def add(operator: str, target: str, *inputs: str, **settings: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [target], **settings))
        return target

    def add_all(layers: Sequence[Layer], shape: Shape, last: str, prefix: str) -> str:
        for i, (layer, before) in enumerate(zip(layers, shapes(layers, shape), strict=False)):
            name = f"{prefix}{i}"
            inputs = [f"{name}.weight", f"{name}.bias"] if weight_shape(layer, before) else []
            if layer.kind == "dense":
                last = add("Flatten", f"{name}.flat", last)
            if parts := branches(layer, before):
                pairs = zip(parts, BRANCHES, strict=True)
                sums = [add_all(part, before, last, f"{name}.{word}.") for part, word in pairs]
                last = add("Add", f"{name}.out", *sums)
            else:
                operator, settings = _operator(layer, before)
                last = add(operator, f"{name}.out", last, *inputs, **settings)
            if layer.rectified:
                last = add("Relu", f"{name}.relu", last)
        return last

    last = add_all(layers, shape, "image", "")
    tensors = [
        numpy_helper.from_array(np.asarray(values, np.float32), name)
        for name, values in weights.items()
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", *shape])
    n_classes = shapes(layers, shape)[-1][0]
    scores = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", n_classes])
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
