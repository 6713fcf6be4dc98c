"""Integers in place of floats, as the command export makes them."""

import json
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from tests.generators.examples import INTEGERS
from visionshare import CompactClassifier, Network, ShareBoost, Templates
from visionshare.cli.main import main
from visionshare.datasets import load_dataset
from visionshare.export import run_onnx
from visionshare.export.onnx.model import OnnxProgram

needs_tools = pytest.mark.skipif(
    not all(map(find_spec, ("ziglang", "unicorn", "elftools"))),
    reason="without the packages of the extra edge",
)
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler on this machine"
)
needs_onnx = pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxruntime"))), reason="onnx or onnxruntime is missing"
)


@pytest.fixture(scope="module")
def layered(tmp_path_factory):
    """Return the file of a classifier of templates on maps, of floats."""
    train = load_dataset("digits", "train")
    maps = Templates(4, 3, pool=2, padding=1, n_patches=900)
    templates = Templates(12, 2, grid=2, padding=2, n_patches=900)
    family = Network([maps, templates]).fit(train.images)
    learner = ShareBoost(rounds=20).fit(family.transform(train.images), train.labels)
    classes = np.array(train.classes)[learner.classes_]
    model = CompactClassifier(
        family.take(learner.support_), learner.coef_, learner.intercept_, classes
    )
    file = tmp_path_factory.mktemp("layered") / "classifier.safetensors"
    model.save(file)
    return file


@pytest.fixture(scope="module")
def few_bits(images, tmp_path_factory):
    """Return the file of a classifier whose templates and weights are integers of 4 bits."""
    family = INTEGERS["ternary"](images[0])
    weights = np.random.default_rng(3).integers(-7, 8, (10, family.n_features_))
    model = CompactClassifier(family, weights, np.zeros(10, np.int64), np.arange(10), 900.0)
    file = tmp_path_factory.mktemp("few-bits") / "classifier.safetensors"
    model.save(file)
    return file


def _measured(capsys, *arguments):
    capsys.readouterr()
    assert main(["measure", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@needs_tools
def test_a_core_computes_in_integers_where_it_can(trained, layered, capsys):
    def on_core(file, *more):
        return _measured(capsys, file, "--target", "cortex-m0plus", "--count", "5", *more)

    assert on_core(trained)["arithmetic"] == "integers"
    assert on_core(trained, "--quantize", "none")["arithmetic"] == "floats"
    floats = on_core(layered)
    integers = on_core(layered, "--calibrate", "digits")
    assert (floats["arithmetic"], integers["arithmetic"]) == ("floats", "integers")
    assert integers["different_scores"] == 0
    assert integers["instructions"] < floats["instructions"] / 4
    assert integers["flash"] < floats["flash"] / 2
    smaller = on_core(layered, "--quantize", "int4", "--calibrate", "digits")
    assert smaller["constants"] < integers["constants"]


@needs_compiler
def test_c_is_compared_with_the_floats(layered, tmp_path, capsys):
    calibrated = ["--calibrate", "digits"]
    assert main(["export", str(layered), "--out", str(tmp_path), *calibrated]) == 0
    assert "int32_t" in (tmp_path / "classifier.h").read_text()
    figures = _measured(capsys, layered, "digits", *calibrated)
    assert (figures["tables"], figures["arithmetic"]) == ("int8", "integers")
    assert figures["images"] == len(load_dataset("digits", "test"))
    assert figures["different_labels"] < 0.05 * figures["images"]


@needs_onnx
def test_onnx_has_the_same_integers(layered, tmp_path, capsys):
    calibrated = ["--calibrate", "digits"]
    out = ["--out", str(tmp_path / "c.onnx")]
    assert main(["export", str(layered), "--to", "onnx", *out, *calibrated]) == 0
    figures = _measured(capsys, layered, "digits", "--target", "onnx", *calibrated)
    assert figures["different_labels"] < 0.05 * figures["images"]
    program = OnnxProgram("c", "uint8", (tmp_path / "c.onnx").read_bytes())
    scores = run_onnx(program, load_dataset("digits", "test").images[:20]).scores
    assert np.array_equal(scores, np.rint(scores))


def test_tflite_has_the_integers_of_a_calibration(layered, tmp_path, capsys):
    pytest.importorskip("ai_edge_litert")
    calibrated = ["--calibrate", "digits"]
    out = ["--out", str(tmp_path / "c.tflite"), "--pixel", "float32"]
    assert main(["export", str(layered), "--to", "tflite", *out, *calibrated]) == 0
    assert (tmp_path / "c.tflite").read_bytes()[4:8] == b"TFL3"
    figures = _measured(capsys, layered, "digits", "--target", "tflite", *calibrated)
    assert figures["different_labels"] < 0.05 * figures["images"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--quantize", "int4"], "--calibrate: got None"),
        (["--to", "onnx", "--quantize", "int8"], "--calibrate: got None"),
        (["--to", "onnx", "--quantize", "int16"], "--quantize: got 'int16'"),
        (["--quantize", "int16", "--calibrate", "digits"], "--calibrate: got 'digits'"),
        (["--to", "onnx", "--calibrate", "digits"], "have no integers in onnx"),
    ],
)
def test_options_that_do_not_go_together(options, said, trained, tmp_path, capsys):
    assert main(["export", str(trained), "--out", str(tmp_path / "out"), *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_was_learned_in_integers_is_exported_as_it_is(few_bits, tmp_path, capsys):
    assert main(["export", str(few_bits), "--to", "arduino", "--out", str(tmp_path / "a")]) == 0
    assert main(["export", str(few_bits), "--out", str(tmp_path / "c")]) == 0
    packaged = next((tmp_path / "a").rglob("classifier.c")).read_text()
    tables = [line for line in packaged.splitlines() if line.startswith("static const")]
    assert tables
    plain = (tmp_path / "c" / "classifier.c").read_text()
    assert all(line in plain for line in tables)
    capsys.readouterr()
    assert main(["export", str(few_bits), "--out", str(tmp_path / "d"), "--quantize", "int8"]) == 2
    assert "tables are of whole numbers" in capsys.readouterr().err


@needs_tools
def test_a_core_takes_what_was_learned_in_integers(few_bits, capsys):
    found = _measured(capsys, few_bits, "--target", "cortex-m4", "--count", "5")
    assert (found["arithmetic"], found["different_scores"]) == ("integers", 0)
