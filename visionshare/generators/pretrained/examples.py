"""Small instances of pretrained networks, for tests, fuzzing and exports."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from visionshare.codegen.onnx_graph import require_onnx
from visionshare.generators.base import FeatureFamily
from visionshare.generators.pretrained.family import PretrainedNetwork

__all__ = ["EXAMPLES"]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that lasts as long as the process."""
    return tempfile.TemporaryDirectory(prefix="visionshare-network-")


def _tiny() -> FeatureFamily:
    """Return a network of two convolutions of random weights."""
    onnx = require_onnx()
    helper = onnx.helper
    rng = np.random.default_rng(0)
    nodes, constants = [], []
    for name, below, shape in (("low", "images", (3, 1, 3, 3)), ("high", "low.up", (5, 3, 3, 3))):
        weights = rng.normal(size=shape).astype(np.float32)
        constants.append(onnx.numpy_helper.from_array(weights, f"{name}.weight"))
        nodes.append(helper.make_node("Conv", [below, f"{name}.weight"], [name]))
        nodes.append(helper.make_node("Relu", [name], [f"{name}.up"]))
    kind = onnx.TensorProto.FLOAT
    given = helper.make_tensor_value_info("images", kind, ["n", 1, 8, 8])
    made = helper.make_tensor_value_info("high.up", kind, ["n", 5, 4, 4])
    graph = helper.make_graph(nodes, "tiny", [given], [made], constants)
    opset = helper.make_opsetid("", 13)
    path = Path(_folder().name, "tiny.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(path))
    return PretrainedNetwork(path, ["low.up", "high.up"], 8, [127.0], [128.0])


EXAMPLES: dict[str, Callable[[], FeatureFamily]] = {"pretrained": _tiny}
