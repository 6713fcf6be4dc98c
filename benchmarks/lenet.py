"""LeNet-5 as a network of ONNX, with random weights: what it costs does not depend on them.

References
----------
Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
recognition", Proceedings of the IEEE 86, 1998; with the maxima and the padding of today.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["MACS", "lenet_session"]

MACS = 28 * 28 * 6 * 25 + 10 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10


def _network() -> Any:
    from onnx import TensorProto, helper, numpy_helper

    rng, tensors = np.random.default_rng(0), []

    def weights(name: str, *shape: int) -> str:
        values = rng.normal(0, 0.1, shape).astype(np.float32)
        tensors.append(numpy_helper.from_array(values, name))
        return name

    def layer(kind: str, source: str, target: str, *shape: int, **settings: Any) -> Any:
        inputs = [source, weights(f"{target}_w", *shape), weights(f"{target}_b", shape[0])]
        return helper.make_node(kind, inputs, [target], **settings)

    def halved(source: str, target: str) -> Any:
        sides = {"kernel_shape": [2, 2], "strides": [2, 2]}
        return helper.make_node("MaxPool", [source], [target], **sides)

    nodes = [
        layer("Conv", "image", "c1", 6, 1, 5, 5, pads=[2, 2, 2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        halved("r1", "p1"),
        layer("Conv", "p1", "c2", 16, 6, 5, 5),
        helper.make_node("Relu", ["c2"], ["r2"]),
        halved("r2", "p2"),
        helper.make_node("Flatten", ["p2"], ["flat"]),
        layer("Gemm", "flat", "f1", 120, 400, transB=1),
        helper.make_node("Relu", ["f1"], ["a1"]),
        layer("Gemm", "a1", "f2", 84, 120, transB=1),
        helper.make_node("Relu", ["f2"], ["a2"]),
        layer("Gemm", "a2", "scores", 10, 84, transB=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, 28, 28])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10])
    graph = helper.make_graph(nodes, "lenet5", [image], [scores], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    return model


def lenet_session() -> Any:
    """Return a session of onnxruntime on one thread; inputs are named ``image``."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        _network().SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
