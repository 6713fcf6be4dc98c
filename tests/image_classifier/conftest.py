"""Small images that are quickly told apart: bars that lie, stand or lean."""

import numpy as np
import pytest

from visionshare import ImageClassifier

# Enough for three layers; each trial is short.
BUDGET = 3000
NAMES = np.array(["lying", "standing"])


def _bars(n, seed=0, side=9):
    """Return images of one bar each, and the name of its direction."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, side, side)).astype(np.uint8)
    labels = rng.permutation(n) % 2
    for image, label in zip(images, labels, strict=True):
        position = rng.integers(1, side - 2)
        rows = image if label == 0 else image.T
        rows[position : position + 2] = rng.integers(180, 256)
    return images, NAMES[labels]


@pytest.fixture(scope="session")
def bars():
    return _bars


@pytest.fixture(scope="session")
def pictures():
    return _bars(60)


@pytest.fixture(scope="session")
def network_file(tmp_path_factory):
    """Return a file of a network of two convolutions of random weights, for pictures of 24."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    rng = np.random.default_rng(0)
    nodes, constants = [], []
    for x, name, shape in (("in", "low", (4, 3, 5, 5)), ("low.up", "high", (6, 4, 5, 5))):
        weights = rng.normal(size=shape).astype(np.float32)
        constants.append(onnx.numpy_helper.from_array(weights, f"{name}.weight"))
        nodes.append(helper.make_node("Conv", [x, f"{name}.weight"], [name], strides=[2, 2]))
        nodes.append(helper.make_node("Relu", [name], [f"{name}.up"]))
    kind = onnx.TensorProto.FLOAT
    given = helper.make_tensor_value_info("in", kind, ["n", 3, 24, 24])
    made = helper.make_tensor_value_info("high.up", kind, ["n", 6, 3, 3])
    graph = helper.make_graph(nodes, "network", [given], [made], constants)
    path = tmp_path_factory.mktemp("network") / "network.onnx"
    opset = helper.make_opsetid("", 13)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(path))
    return path


@pytest.fixture(scope="session")
def fitted(pictures):
    return ImageClassifier(budget=BUDGET, size=9, n_jobs=1).fit(*pictures)
