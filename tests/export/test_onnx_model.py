"""What an ONNX model says of itself, and what cannot be one."""

import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from visionshare import CompactClassifier, Pixels, SourceClassifiers, __version__
from visionshare.errors import ExportError, InputError
from visionshare.export import onnx_program, run_onnx

onnx = pytest.importorskip("onnx")


def pixels(classes, temperature=1.0):
    family = Pixels().fit(np.zeros((1, 2, 2)))
    k = len(classes)
    return CompactClassifier(family, np.eye(k, 4), np.zeros(k), np.array(classes), temperature)


def test_versions_inputs_outputs_and_properties(classifier):
    model = classifier("patches")
    proto = onnx.load_from_string(onnx_program(model, "digits_4").content)
    assert (proto.ir_version, proto.opset_import[0].version, len(proto.opset_import)) == (9, 18, 1)
    assert (proto.producer_name, proto.producer_version) == ("visionshare", __version__)
    assert proto.graph.name == "digits_4"
    types, values = onnx.TensorProto, {}
    for value in (*proto.graph.input, *proto.graph.output):
        kind = value.type.tensor_type
        values[value.name] = (
            kind.elem_type, [d.dim_param or d.dim_value for d in kind.shape.dim]
        )  # fmt: skip
    assert values == {
        "images": (types.UINT8, ["batch", 8, 8]),
        "label": (types.STRING, ["batch"]),
        "probabilities": (types.FLOAT, ["batch", 4]),
        "scores": (types.FLOAT, ["batch", 4]),
    }
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(properties["classes"]) == model.classes_.tolist()
    assert json.loads(properties["image_shape"]) == [8, 8]
    assert float(properties["temperature"]) == model.temperature
    assert properties["visionshare_version"] == __version__
    assert (properties["pixel"], properties["family"], properties["features"]) == (
        "uint8",
        "patches",
        "25",
    )
    assert "255" in properties["preprocessing"]


@pytest.mark.parametrize("kind", ["patches", "gabor", "anchors-pca", "union", "sources"])
def test_export_is_deterministic(kind, classifier, tmp_path):
    model = classifier(kind)
    content = onnx_program(model).content
    assert onnx_program(model).content == content
    model.save(tmp_path / "saved")
    assert onnx_program(CompactClassifier.load(tmp_path / "saved")).content == content


@pytest.mark.parametrize("kind", ["patches", "gabor", "anchors", "union", "sources"])
def test_nothing_is_made_twice_or_for_nothing(kind, classifier):
    graph = onnx.load_from_string(onnx_program(classifier(kind)).content).graph
    used = {name for node in graph.node for name in node.input}
    assert {constant.name for constant in graph.initializer} <= used
    outputs = {output.name for output in graph.output}
    assert {name for node in graph.node for name in node.output} <= used | outputs
    nodes = [
        (node.op_type, tuple(node.input), tuple(a.SerializeToString() for a in node.attribute))
        for node in graph.node
    ]
    assert len(set(nodes)) == len(nodes)


@pytest.mark.parametrize(
    ("classes", "kind"), [([7, -2, 5], "INT64"), (["", "é", "\"';\\\n"], "STRING")]
)
def test_labels_are_classes(classes, kind):
    pytest.importorskip("onnxruntime")
    program = onnx_program(pixels(classes))
    images = np.zeros((4, 2, 2), np.uint8)
    images[np.arange(3), [0, 0, 1], [0, 1, 0]] = 255
    proto = onnx.load_from_string(program.content)
    label = next(v for v in proto.graph.output if v.name == "label")
    assert label.type.tensor_type.elem_type == getattr(onnx.TensorProto, kind)
    # The last image has equal scores: the first of the classes wins, as in Python.
    assert run_onnx(program, images)[0].tolist() == [*classes, classes[0]]
    assert pixels(classes).predict(images).tolist() == [*classes, classes[0]]


def test_probabilities_follow_the_temperature():
    pytest.importorskip("onnxruntime")
    model, images = pixels([0, 1, 2], 0.01), np.array([[[255, 0], [200, 0]]], np.uint8)
    probabilities = run_onnx(onnx_program(model), images).probabilities
    assert np.allclose(probabilities, model.predict_proba(images), atol=1e-6)
    assert probabilities.max() > 0.99


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [({"name": "a-b"}, "name"), ({"name": "../up"}, "name"), ({"pixel": "int8"}, "pixel")],
)
def test_wrong_arguments(arguments, argument, classifier):
    with pytest.raises(InputError) as raised:
        onnx_program(classifier("pixels"), **arguments)
    assert raised.value.argument == argument


def test_what_cannot_be_written(images):
    family = SourceClassifiers([lambda images: images.mean(axis=(1, 2))]).fit(images[0])
    with pytest.raises(InputError, match="sources"):
        onnx_program(CompactClassifier(family, np.ones((2, 1)), np.zeros(2), np.arange(2)))
    empty = Pixels().fit(images[0]).take(np.empty(0, np.int64))
    with pytest.raises(InputError, match="no features"):
        onnx_program(CompactClassifier(empty, np.ones((2, 0)), np.zeros(2), np.arange(2)))
    with pytest.raises(InputError, match="temperature"):
        onnx_program(pixels([0, 1], 1e-60))
    with pytest.raises(InputError, match="UTF-8"):
        onnx_program(pixels(["a", "\ud800"]))

    class Foreign(Pixels):
        name = "foreign"

    model = CompactClassifier(Foreign().fit(images[0]), np.ones((2, 64)), np.zeros(2), np.arange(2))
    with pytest.raises(InputError, match="foreign"):
        onnx_program(model)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_the_command(package, monkeypatch, classifier, images):
    model = classifier("pixels")
    program = onnx_program(model)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExportError, match=r"pip install"):
        run_onnx(onnx_program(model), images[1])
    assert program.content


def test_wrong_images_are_an_error(classifier, images):
    pytest.importorskip("onnxruntime")
    program = onnx_program(classifier("pixels"))
    for wrong in (images[1].astype(np.float32), images[1][:, :7]):
        with pytest.raises(ExportError, match="onnxruntime"):
            run_onnx(program, wrong)


@pytest.mark.parametrize("kind", ["patches", "lbp", "stumps"])
def test_older_operators_say_the_same(kind, classifier, images):
    model, test = classifier(kind), images[1]
    expected = run_onnx(onnx_program(model), test)
    for opset in (13, 17):
        program = onnx_program(model, opset=opset)
        found = run_onnx(program, test)
        assert found.labels.tolist() == expected.labels.tolist()
        assert_array_equal(found.scores, expected.scores)
        loaded = onnx.load_from_string(program.content)
        onnx.checker.check_model(loaded)
        assert (loaded.opset_import[0].version, program.opset) == (opset, opset)
    with pytest.raises(InputError, match="opset"):
        onnx_program(model, opset=12)
