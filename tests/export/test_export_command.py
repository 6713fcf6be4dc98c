"""The command export as a person uses it."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from visionshare.cli.main import main
from visionshare.datasets import load_dataset

HAS_COMPILER = any(map(shutil.which, ("cc", "gcc", "clang")))


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler on this machine")
def test_measured_on_digits(trained, tmp_path, capsys):
    options = ["--quantize", "int8"]
    assert main(["export", str(trained), "--out", str(tmp_path), *options]) == 0
    assert "classifier.h" in capsys.readouterr().out
    # Again into the same folder.
    assert main(["export", str(trained), "--out", str(tmp_path), *options, "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert str(tmp_path / "classifier.c") in files
    assert main(["measure", str(trained), "digits", *options, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["images"] == len(load_dataset("digits", "test"))
    difference = abs(figures["errors"] - figures["errors_in_python"])
    assert difference <= figures["different_labels"] < 0.05 * figures["images"]
    assert figures["tables"] == "int8"
    assert 0 < figures["ram"] < 4096
    # For reading.
    assert main(["measure", str(trained), "digits", *options]) == 0
    printed = capsys.readouterr().out
    for word in ("flash", "ram", "errors in python", "different labels"):
        assert word in printed


@pytest.mark.skipif(
    not HAS_COMPILER or shutil.which("make") is None, reason="no C compiler or make"
)
def test_the_makefile_builds_the_example(trained, tmp_path, capsys):
    from visionshare import load

    options = ["--identifier-prefix", "digits", "--rounds", "4", "--probabilities"]
    options += ["--quantize", "none"]
    assert main(["export", str(trained), "--out", str(tmp_path), *options]) == 0
    subprocess.run(["make", "-C", str(tmp_path)], check=True, capture_output=True)
    images = load_dataset("digits", "test").images[:50]
    (tmp_path / "images.raw").write_bytes(images.tobytes())
    command = [str(tmp_path / "example"), str(tmp_path / "images.raw")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    model = load(trained).at(4)
    scores = np.array([line.split("\t")[1:] for line in printed.splitlines()], np.float64)
    expected = model.decision_function(images)
    assert np.abs(scores - expected).max() <= 1e-5 * np.abs(expected).max()
    for content, wrong in ((b"short", command), (None, [command[0], "missing.raw"])):
        if content:
            (tmp_path / "images.raw").write_bytes(content)
        assert subprocess.run(wrong, check=False, capture_output=True).returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--to", "java"], ["--quantize", "int4"], ["--pixel", "int8"],
        ["--quantize", "none", "--calibrate", "digits"],
        ["--identifier-prefix", "int"], ["--identifier-prefix", "stdint"],
        ["--identifier-prefix", "math"], ["--identifier-prefix", "lambda"],
        ["--rounds", "7"], ["--rounds", "0"], ["--calibrate", "nowhere"],
        ["--fast"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_arguments_write_nothing(arguments, trained, tmp_path, capsys):
    capsys.readouterr()
    out = tmp_path / "out"
    assert main(["export", str(trained), "--out", str(out), *arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert not out.exists()


def test_broken_classifiers_and_folders(trained, tmp_path, capsys):
    (tmp_path / "broken").write_bytes(trained.read_bytes()[:-7])
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "Makefile").write_text("all:\n")
    for file, out in (
        (tmp_path / "broken", tmp_path / "out"),
        (trained, tmp_path / "broken"),
        (trained, tmp_path / "broken" / "below"),
        (trained, tmp_path / "foreign"),
    ):
        assert main(["export", str(file), "--out", str(out)]) == 2
        assert capsys.readouterr().err.startswith("error: ")
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["Makefile"]
    assert (tmp_path / "foreign" / "Makefile").read_text() == "all:\n"
