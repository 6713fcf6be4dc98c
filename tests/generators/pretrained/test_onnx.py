"""A network and its classifier in one ONNX file, in onnxruntime and in OpenCV."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from visionshare import CompactClassifier, PretrainedNetwork
from visionshare.errors import InputError
from visionshare.export import onnx_program, run_onnx
from visionshare.generators.pretrained.network import cut

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
cv2 = pytest.importorskip("cv2", minversion="5")


def _network(path, padding, stride, opset=13):
    """Write a network of two convolutions with automatic padding; return its content."""
    helper = onnx.helper
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=s).astype(np.float32) for s in ((4, 3, 3, 3), (6, 4, 5, 3))]
    nodes = [
        helper.make_node("Conv", [x, w], [y], auto_pad=padding, strides=[stride, stride])
        for x, w, y in (("in", "w0", "low"), ("low", "w1", "high"))
    ]
    constants = [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    kind = onnx.TensorProto.FLOAT
    given = helper.make_tensor_value_info("in", kind, ["n", 3, "h", "w"])
    made = helper.make_tensor_value_info("high", kind, ["n", 6, "a", "b"])
    graph = helper.make_graph(nodes, "network", [given], [made], constants)
    version = helper.make_opsetid("", opset)
    content = helper.make_model(graph, opset_imports=[version], ir_version=8).SerializeToString()
    path.write_bytes(content)
    return content


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_stated_paddings_are_the_automatic_ones(tmp_path, padding, stride):
    content = _network(tmp_path / "network.onnx", padding, stride)
    images = np.random.default_rng(1).normal(size=(1, 3, 33, 26)).astype(np.float32)
    part = cut(content, ("low", "high"), (3, 33, 26))
    automatic = onnxruntime.InferenceSession(content).run(["high"], {"in": images})[0]
    stated = onnxruntime.InferenceSession(part.content).run(["high/column"], {"in": images})[0]
    assert_allclose(stated, automatic.mean(axis=(2, 3)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "pixel", "power"),
    [
        ((24, 24, 3), "uint8", 0.5), ((50, 31, 3), "uint8", 1.0), ((20, 17), "uint8", 1.0),
        ((30, 30), "float32", 0.7),
    ],
)  # fmt: skip
def test_one_file_in_onnxruntime_and_opencv(tmp_path, shape, pixel, power):
    path = tmp_path / "network.onnx"
    _network(path, "SAME_UPPER", 2, opset=11)
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (7, *shape), np.uint8)
    if pixel == "float32":
        images = images.astype(np.float32) / 255
    family = PretrainedNetwork(path, ["low", "high"], 24, [120.0, 110, 100], [60.0, 50, 55], power)
    family = family.fit(images).take([7, 2, 5])
    classes = np.array(["a", "b", "c"])
    model = CompactClassifier(family, rng.normal(size=(3, 3)), np.zeros(3), classes)
    scores = model.decision_function(images)
    found = run_onnx(onnx_program(model, pixel=pixel), images)
    assert_allclose(found.scores, scores, rtol=1e-4, atol=1e-4)
    assert_array_equal(found.labels, model.predict(images))
    program = onnx_program(model, pixel=pixel, labels="indices")
    net = cv2.dnn.readNetFromONNX(np.frombuffer(program.content, np.uint8))
    net.setInput(images, "images")
    label, _, of_opencv = net.forward(["label", "probabilities", "scores"])
    assert_allclose(of_opencv, scores, rtol=1e-4, atol=1e-4)
    assert_array_equal(classes[label], model.predict(images))


def test_other_labels_are_refused():
    family = PretrainedNetwork.__new__(PretrainedNetwork)
    model = CompactClassifier.__new__(CompactClassifier)
    object.__setattr__(model, "family", family)
    with pytest.raises(InputError, match=r"^labels: got 'texts'"):
        onnx_program(model, pixel="uint8", labels="texts")
