"""The command export --to onnx as a person uses it."""

import json

import numpy as np
import pytest

from visionshare import load
from visionshare.cli.main import main
from visionshare.datasets import load_dataset
from visionshare.export import onnx_program

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def test_measured_on_digits_and_again(trained, tmp_path, capsys):
    file = tmp_path / "below" / "digits.onnx"
    arguments = ["export", str(trained), "--to", "onnx", "--out", str(file)]
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": [str(file)]}
    measure = ["measure", str(trained), "digits", "--target", "onnx"]
    assert main([*measure, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["images"] == len(load_dataset("digits", "test"))
    assert figures["different_labels"] == 0
    assert figures["errors"] == figures["errors_in_python"]
    assert figures["bytes"] == file.stat().st_size
    first = file.read_bytes()
    # An earlier export is replaced, by the same bytes.
    assert main([*arguments]) == 0
    assert "digits.onnx" in capsys.readouterr().out
    assert main(measure) == 0
    printed = capsys.readouterr().out
    for word in ("opset              18", "errors in python", "different labels   0 of"):
        assert word in printed
    assert file.read_bytes() == first == onnx_program(load(trained)).content


def test_a_prefix_of_the_rounds_of_floats_into_a_folder(trained, tmp_path):
    assert main(["export", str(trained), "--to", "onnx", "--out", str(tmp_path), "--rounds", "4",
                 "--pixel", "float32", "--identifier-prefix", "four"]) == 0  # fmt: skip
    images = load_dataset("digits", "test").images.astype(np.float32) / np.float32(255)
    session = onnxruntime.InferenceSession(str(tmp_path / "four.onnx"))
    labels, scores = session.run(["label", "scores"], {"images": images})
    model = load(trained).at(4)
    with pytest.warns(UserWarning, match="same scale"):
        expected = model.decision_function(images)
    assert np.abs(scores - expected).max() <= 1e-5 * np.abs(expected).max()
    assert labels.tolist() == model.classes_[expected.argmax(axis=1)].tolist()


def test_indices_and_an_older_opset_open_in_opencv(trained, tmp_path):
    cv2 = pytest.importorskip("cv2", minversion="5.0")
    file = tmp_path / "opencv.onnx"
    command = ["export", str(trained), "--to", "onnx", "--labels", "indices", "--out", str(file)]
    model = load(trained)
    images = load_dataset("digits", "test").images[:50]
    for opset in (13, 18):
        assert main([*command, "--opset", str(opset)]) == 0
        assert onnx.load(file).opset_import[0].version == opset
        net = cv2.dnn.readNetFromONNX(str(file))
        net.setInput(images, "images")
        label, probabilities, _ = net.forward(["label", "probabilities", "scores"])
        expected = model.predict(images)
        assert model.classes_[label.ravel()].tolist() == expected.tolist()
        assert model.classes_[probabilities.argmax(axis=1)].tolist() == expected.tolist()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--quantize", "int8"], ["--pixel", "int8"], ["--identifier-prefix", "a/b"],
        ["--rounds", "7"],
        ["--rounds", "0"], ["--calibrate", "nowhere"], ["--opset", "9"], ["--preparation"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_arguments_write_nothing(arguments, trained, tmp_path, capsys):
    capsys.readouterr()
    out = tmp_path / "out"
    assert main(["export", str(trained), "--to", "onnx", "--out", str(out), *arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert not out.exists()


def test_broken_classifiers_and_files_that_are_there(trained, tmp_path, capsys):
    (tmp_path / "broken").write_bytes(trained.read_bytes()[:-7])
    foreign = tmp_path / "foreign.onnx"
    foreign.write_bytes(b"precious")
    (tmp_path / "folder.onnx").mkdir()
    for file, out in (
        (tmp_path / "broken", tmp_path / "out"),
        (tmp_path / "missing", tmp_path / "out"),
        (trained, tmp_path / "broken"),
        (trained, tmp_path / "broken" / "below.onnx"),
        (trained, foreign),
        (trained, tmp_path / "folder.onnx"),
    ):
        assert main(["export", str(file), "--to", "onnx", "--out", str(out)]) == 2
        assert capsys.readouterr().err.startswith("error: ")
    assert foreign.read_bytes() == b"precious"
    assert not (tmp_path / "out").exists()
