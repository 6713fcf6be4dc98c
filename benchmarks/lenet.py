"""LeNet-5: its layers, said once, and the network of ONNX that is timed.

References
----------
Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
recognition", Proceedings of the IEEE 86, 1998; with the maxima and the padding of today.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["LAYERS", "MACS", "SIDE", "Layer", "lenet_session"]

SIDE = 28


class Layer(NamedTuple):
    """A layer with weights; all but the last are followed by max(0, ·).

    ``shape`` is (out, in, 5, 5) of a convolution, whose maxima of 2×2 are kept, and (out, in) of a
    full layer.
    """

    name: str
    shape: tuple[int, ...]
    padding: int = 0

    @property
    def convolves(self) -> bool:
        return len(self.shape) == 4


LAYERS = (
    Layer("c1", (6, 1, 5, 5), padding=2),
    Layer("c2", (16, 6, 5, 5)),
    Layer("f1", (120, 400)),
    Layer("f2", (84, 120)),
    Layer("scores", (10, 84)),
)


def _macs() -> int:
    side, count = SIDE, 0
    for layer in LAYERS:
        outputs = 1
        if layer.convolves:
            side += 2 * layer.padding - layer.shape[-1] + 1
            outputs, side = side * side, side // 2
        count += outputs * int(np.prod(layer.shape))
    return count


MACS = _macs()


def _random_weights() -> dict[str, np.ndarray]:
    rng, weights = np.random.default_rng(0), {}
    for layer in LAYERS:
        weights[f"{layer.name}.weight"] = rng.normal(0, 0.1, layer.shape)
        weights[f"{layer.name}.bias"] = rng.normal(0, 0.1, layer.shape[0])
    return weights


def _network(weights: Mapping[str, np.ndarray]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    last, flat = "image", False

    def add(kind: str, target: str, *inputs: str, **settings: Any) -> None:
        nonlocal last
        nodes.append(helper.make_node(kind, [last, *inputs], [target], **settings))
        last = target

    for layer in LAYERS:
        inputs = [f"{layer.name}.weight", f"{layer.name}.bias"]
        if not layer.convolves and not flat:
            add("Flatten", "flat")
            flat = True
        if layer.convolves:
            add("Conv", layer.name, *inputs, pads=[layer.padding] * 4)
        else:
            add("Gemm", layer.name, *inputs, transB=1)
        if layer is not LAYERS[-1]:
            add("Relu", f"{layer.name}.relu")
        if layer.convolves:
            add("MaxPool", f"{layer.name}.pool", kernel_shape=[2, 2], strides=[2, 2])
    tensors = [
        numpy_helper.from_array(np.asarray(values, np.float32), name)
        for name, values in weights.items()
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, SIDE, SIDE])
    scores = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", LAYERS[-1].shape[0]])
    graph = helper.make_graph(nodes, "lenet5", [image], [scores], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    return model


def lenet_session(weights: Mapping[str, np.ndarray] | None = None) -> Any:
    """Return a session of onnxruntime on one thread; inputs are named ``image``.

    Parameters
    ----------
    weights : mapping of str to ndarray, optional
        ``NAME.weight`` and ``NAME.bias`` of each layer; random when omitted: what the network
        costs does not depend on them.
    """
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    network = _network(_random_weights() if weights is None else weights)
    return onnxruntime.InferenceSession(
        network.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
