"""TensorFlow Lite: LiteRT gives the scores of Python, to the bit for weights of few bits."""

import json

import numpy as np
import pytest

from tests.generators.examples import INTEGERS
from visionshare import CompactClassifier, Network, load
from visionshare.cli.main import main
from visionshare.datasets import load_dataset
from visionshare.errors import InputError
from visionshare.export import run_tflite, tflite_program
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.generators.layers.units.integers import IntegerUnits

litert = pytest.importorskip("ai_edge_litert.interpreter")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")

# Operators that the firmware of AI-on-the-edge registers, by their names in the schema.
FIRMWARE = {
    "FULLY_CONNECTED", "RESHAPE", "SOFTMAX", "CONV_2D", "MAX_POOL_2D", "QUANTIZE", "MUL", "ADD",
    "LEAKY_RELU", "DEQUANTIZE",
}  # fmt: skip


def classifier_of(family, n_classes=5):
    rng = np.random.default_rng(3)
    weights = rng.integers(-7, 8, (n_classes, family.n_features_))
    intercept = rng.integers(-3000, 3000, n_classes)
    return CompactClassifier(family, weights, intercept, np.arange(n_classes), 900.0)


def interpreters(content):
    # XNNPACK, the kernels without it, and those that microcontrollers have.
    for name in ("AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF"):
        kind = getattr(litert.OpResolverType, name)
        made = litert.Interpreter(model_content=content, experimental_op_resolver_type=kind)
        made.allocate_tensors()
        yield made


def scores_of(interpreter, images):
    given = interpreter.get_input_details()[0]
    found = []
    for image in images:
        interpreter.set_tensor(given["index"], image.reshape(given["shape"]).astype(given["dtype"]))
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[1]["index"])[0])
    return np.array(found)


@pytest.mark.parametrize("kind", sorted(INTEGERS))
def test_scores_of_every_kind_are_those_of_python(kind, images):
    train, test = images
    test = np.concatenate([test[:30], np.zeros_like(test[:1]), np.full_like(test[:1], 255)])
    model = classifier_of(INTEGERS[kind](train))
    if any(layer.kind.startswith("residual") for layer in model.family.layers_):
        with pytest.raises(InputError, match="residual"):
            tflite_program(model)
        return
    expected = model.decision_function(test)
    # Eight bits leave no room for four times a weight: halves may be rounded otherwise.
    few = all(layer.bits != 8 for layer in model.family.layers_ if layer.weighted)
    for interpreter in interpreters(tflite_program(model).content):
        scores = scores_of(interpreter, test)
        differing = np.mean(scores != expected)
        assert differing == 0 if few else np.abs(scores - expected).max() < 50


def test_bundled_classifiers_give_the_labels_of_python():
    digits = load_dataset("digits", "test").images[:60]
    model = load("mnist-4k")
    rasters = np.stack([model.preprocessing.apply(digit, (28, 28)) for digit in digits])
    expected = model.decision_function(rasters)
    program = tflite_program(model)
    probabilities, scores = run_tflite(program, rasters)
    assert np.array_equal(scores, expected)
    assert np.abs(probabilities - model.predict_proba(rasters)).max() < 1e-5
    described = schema.Model.GetRootAs(program.content).Description()
    assert json.loads(described)["classes"] == model.classes_.tolist()


def color_network(n_classes):
    """Return a classifier of RGB digits of 32x20, of two layers of templates and one of units."""
    rng = np.random.default_rng(0)

    def ternary(*shape):
        return rng.integers(-1, 2, shape)

    def templates(in_shape, n, pads, sides, pool):
        cells = [np.repeat(np.arange(side // pool), pool) for side in sides]
        shifts = rng.integers(1, 5, n)
        weights = ternary(n, 3, 3, in_shape[2])
        return IntegerTemplates(in_shape, weights, "ternary", ternary(n), shifts, pads, *cells)

    layers = [
        templates((32, 20, 3), 8, (1, 1), (32, 20), 2),
        templates((16, 10, 8), 12, (0, 0), (14, 8), 2),
    ]
    shape = layers[-1].out_shape
    n = 20
    shifts = np.full(n, 4)
    layers.append(
        IntegerUnits(shape, ternary(n, int(np.prod(shape))), "ternary", ternary(n), shifts)
    )
    return classifier_of(Network.of(layers, np.arange(n), (32, 20, 3)), n_classes)


@pytest.mark.parametrize("n_classes", [10, 11, 100])
def test_digits_as_the_firmware_of_meters_takes_them(n_classes, tmp_path, capsys):
    model = color_network(n_classes)
    model.save(tmp_path / "model")
    out = tmp_path / "dig.tflite"
    arguments = ["export", str(tmp_path / "model"), "--to", "tflite", "--pixel", "float32"]
    assert main([*arguments, "--out", str(out)]) == 0
    content = out.read_bytes()
    # 1) only operators that it registers
    file = schema.Model.GetRootAs(content)
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    codes = [
        file.OperatorCodes(number).BuiltinCode() for number in range(file.OperatorCodesLength())
    ]
    assert {names[code] for code in codes} <= FIRMWARE
    # 2) RGB from 0 to 255 in floats, and the classes in the first output
    images = np.random.default_rng(1).integers(0, 256, (20, 32, 20, 3), np.uint8)
    for interpreter in interpreters(content):
        (given,) = interpreter.get_input_details()
        assert (given["shape"].tolist(), given["dtype"]) == ([1, 32, 20, 3], np.float32)
        first = interpreter.get_output_details()[0]
        assert (first["shape"].tolist(), first["dtype"]) == ([1, n_classes], np.float32)
        assert np.array_equal(scores_of(interpreter, images), model.decision_function(images))


def test_command(trained, tmp_path, capsys):
    classifier_of(INTEGERS["ternary"](load_dataset("digits", "train").images)).save(tmp_path / "m")
    capsys.readouterr()
    assert main(["measure", str(tmp_path / "m"), "--target", "tflite", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["target"], figures["different_labels"]) == ("tflite", 0)
    out = ["--to", "tflite", "--out", str(tmp_path / "out")]
    assert main(["export", str(tmp_path / "m"), *out]) == 0
    assert (tmp_path / "out" / "classifier.tflite").stat().st_size == figures["bytes"]
    capsys.readouterr()
    for file, more, said in (
        (trained, [], "a network of integers"),
        (tmp_path / "m", ["--pixel", "int8"], "'uint8' or 'float32'"),
        (tmp_path / "m", ["--labels", "indices"], "--to onnx"),
        (tmp_path / "m", ["--preparation"], "C or a package"),
    ):
        assert main(["export", str(file), *out, *more]) == 2
        assert said in capsys.readouterr().err
