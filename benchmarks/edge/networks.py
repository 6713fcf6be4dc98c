"""LeNet-5 and a depthwise-separable network in int8: PyTorch, onnxruntime, emx-onnx-cgen.

They are trained as in :mod:`benchmarks.peers.networks`, with the settings that were chosen there
on held-out images, rounded to 8 bits by onnxruntime on training images, and written as C by a
generator of its own maker. Its C computes sums in whole numbers and scales in floats.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.architectures import KINDS, Layers
from benchmarks.edge.contender import Contender
from benchmarks.layers import Shape, macs, shapes
from benchmarks.peers.networks import Inputs, Network, Plan, fit
from benchmarks.peers.peer import Effort
from visionshare.datasets import ImageSet, load_images
from visionshare.export.targets import DeviceSources

__all__ = ["NETWORKS", "available", "device_network", "learn_network", "quantized_network"]

#: LeNet-5, and as many multiply-accumulates in depthwise and 1×1 convolutions.
NETWORKS = (Network("lenet", None, True), Network("separable", 420_000, True))
# What held-out images of MNIST chose for LeNet-5 in benchmarks.peers.
_RATE, _SMOOTHING = 1.25e-2, 0.1
_CALIBRATED = 1000
_HEADER = """#include <stdint.h>
struct network_work {{ uint8_t scores[1][{classes}]; }};
int network_classify(const uint8_t *image, struct network_work *work, int32_t *scores);
"""
_SOURCE = """#include "network.h"
void model(const uint8_t image[1][{channels}][{rows}][{cols}], uint8_t scores[1][{classes}]);
int network_classify(const uint8_t *image, struct network_work *work, int32_t *scores)
{{
    int k, best = 0;
    model((const uint8_t (*)[{channels}][{rows}][{cols}])(const void *)image, work->scores);
    for (k = 0; k < {classes}; k++) {{
        scores[k] = work->scores[0][k];
        if (scores[k] > scores[best]) best = k;
    }}
    return best;
}}
"""
# What the generated C takes from a mathematical library, which bare metal has not.
_MATH = """#ifndef NETWORK_MATH_H
#define NETWORK_MATH_H
static inline double network_nearest(double x)
{
    return x + 6755399441055744.0 - 6755399441055744.0;
}
#define nearbyint(x) network_nearest(x)
#define nearbyintf(x) ((float)network_nearest((double)(x)))
#define llrint(x) ((long long)network_nearest(x))
#define fmaxf(a, b) ((a) > (b) ? (a) : (b))
#define fminf(a, b) ((a) < (b) ? (a) : (b))
#endif
"""


class Trained(NamedTuple):
    """A network of floats: its layers, weights folded, and how images become its inputs."""

    network: bytes
    layers: Layers
    shape: Shape
    inputs: Inputs


def available() -> bool:
    """Return whether PyTorch, onnxruntime and the generator of C are installed."""
    return all(map(find_spec, ("torch", "onnxruntime", "emx_onnx_cgen")))


def learn_network(
    set_name: str, data: Path, network: Network, seconds: float, recipe: str, seed: int
) -> Contender:
    """Return a network that is trained on images deformed as a recipe says, and rounded."""
    train, test = (load_images(set_name, split, data) for split in ("train", "test"))
    plan = Plan(_RATE, _SMOOTHING, seconds)
    fitted = fit(network, train, plan, Effort(1, False, seed=seed, recipe=recipe))
    floats, inputs = fitted.predict.parts
    trained = Trained(floats, fitted.layers, fitted.shape, inputs)
    sources = device_network(trained, train)
    count = macs(fitted.layers, fitted.shape)
    name = f"{KINDS[network.kind].name}, int8, emx-onnx-cgen"
    return Contender(name, sources, count, test.images, test.labels, fitted.seconds)


def device_network(trained: Trained, train: ImageSet) -> DeviceSources:
    """Return the C of a network in 8 bits, which takes an image's bytes."""
    channels, rows, cols = trained.shape
    sizes = {"channels": channels, "rows": rows, "cols": cols, "classes": len(train.classes)}
    with tempfile.TemporaryDirectory() as name:
        model, code = Path(name) / "network.onnx", Path(name) / "model.c"
        model.write_bytes(quantized_network(trained, train))
        command = [
            sys.executable, "-m", "emx_onnx_cgen", "compile", str(model), str(code),
            "--model-name", "model", "--large-temp-threshold", "0", "--large-weight-threshold", "0",
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        generated = code.read_text().replace("#include <math.h>", '#include "network_math.h"')
    files = {
        "network.h": _HEADER.format(**sizes),
        "network.c": _SOURCE.format(**sizes),
        "network_math.h": _MATH,
        "network_model.c": generated,
    }
    pixels = channels * rows * cols
    return DeviceSources("network", files, "uint8", pixels, len(train.classes), "int32")


def quantized_network(trained: Trained, train: ImageSet) -> bytes:
    """Return a network in whole numbers of 8 bits from an image's bytes to bytes of scores."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    chosen = np.linspace(0, len(train) - 1, _CALIBRATED).astype(np.int64)
    with tempfile.TemporaryDirectory() as name:
        floats, rounded = Path(name) / "floats.onnx", Path(name) / "rounded.onnx"
        floats.write_bytes(trained.network)
        quantize_static(
            str(floats), str(rounded), _Reader(trained.inputs(train.images[chosen])),
            quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8, per_channel=True,
        )  # fmt: skip
        return _of_bytes(onnx.load(str(rounded)), trained)


class _Reader:
    """Inputs that say how large values become, and the darkest and lightest image."""

    def __init__(self, inputs: np.ndarray) -> None:
        self._inputs: Iterator[np.ndarray] = iter(inputs)

    def get_next(self) -> dict[str, np.ndarray] | None:
        one = next(self._inputs, None)
        return None if one is None else {"image": one[None]}


def _of_bytes(model: Any, trained: Trained) -> bytes:
    """Return the model without floats at both ends, and with the shapes of all that is between."""
    from onnx import TensorProto, helper, numpy_helper

    first, *nodes, _ = model.graph.node
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    scale, zero = (float(numpy_helper.to_array(tensors[name])) for name in first.input[1:3])
    inputs = trained.inputs
    # Rounding of inputs is that of bytes: their range was that of all bytes.
    if abs(scale * inputs.deviation - 1) > 1e-3 or abs(zero - inputs.mean) > 1:
        raise RuntimeError(f"inputs in steps of {scale * inputs.deviation} bytes")
    found = shapes(trained.layers, trained.shape)

    def described(name: str) -> Any:
        number, _, kind = name.partition(".")
        shape = list(found[int(number) + (not kind.startswith("flat"))])
        if kind.startswith("flat") or trained.layers[int(number)].kind == "dense":
            shape = [int(np.prod(shape))]
        return helper.make_tensor_value_info(name, TensorProto.UINT8, [1, *shape])

    image = helper.make_tensor_value_info(
        first.output[0], TensorProto.UINT8, [1, *trained.shape]
    )  # fmt: skip
    graph = helper.make_graph(
        nodes, "network", [image], [described(nodes[-1].output[0])], list(tensors.values()),
        value_info=[described(node.output[0]) for node in nodes[:-1]],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=list(model.opset_import))
    made.ir_version = 9
    return bytes(made.SerializeToString())
