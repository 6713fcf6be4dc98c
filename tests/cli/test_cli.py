"""The command line as a person uses it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from visionshare.cli.main import main
from visionshare.datasets import load_dataset

SMALL = ["--rounds", "6", "--set", "features.parameters.n_templates=20", "--set", "data.limit=400"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli")
    assert main(["train", "digits", "--out", str(out), *SMALL]) == 0
    return out / "classifier.safetensors"


def test_train_says_what_matters(tmp_path, capsys):
    assert main(["train", "digits", "--out", str(tmp_path), "--seed", "3", *SMALL]) == 0
    said = capsys.readouterr()
    for word in ("test error", "features     6", "multiply-accumulates", "report.html"):
        assert word in said.out
    assert said.err == ""


def test_evaluate_inspect_bench(trained, capsys):
    assert main(["evaluate", str(trained), "digits", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["images"] == len(load_dataset("digits", "test"))
    assert 0 < figures["error_rate"] < 0.5
    assert main(["evaluate", str(trained), "digits"]) == 0
    assert "% error" in capsys.readouterr().out
    assert main(["inspect", str(trained), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["features"] == 6
    features, scores = summary["layers"]
    assert (features["name"], scores["name"]) == ("patches", "scores")
    assert features["parameters"] + scores["parameters"] == summary["parameters"]
    assert features["macs"] + scores["macs"] == summary["macs"]
    assert main(["inspect", str(trained)]) == 0
    said = capsys.readouterr().out
    assert "features     6" in said
    assert f"parameters   {summary['parameters']}" in said
    assert said.splitlines()[-3].split() == ["layer", "output", "parameters", "macs"]
    assert said.splitlines()[-1].split() == ["scores", "10", "70", "60"]
    assert main(["bench", str(trained), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["macs"] == summary["macs"]
    assert set(figures) >= {"microseconds_one_image", "images_per_second_in_batches", "threads"}


def test_predict_files_folders_patterns_and_standard_input(trained, tmp_path, capsys, monkeypatch):
    digits = load_dataset("digits", "test")
    paths = []
    for i in range(4):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(digits.images[i]).resize((16, 16)).save(paths[-1])
    lines = "\n".join(map(str, paths))
    for images in (list(map(str, paths)), [str(tmp_path)], [str(tmp_path / "?.png")], ["-"]):
        monkeypatch.setattr("sys.stdin", lines.splitlines())
        assert main(["predict", str(trained), *images, "--json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [row["image"] for row in rows] == list(map(str, paths))
        assert all(abs(sum(row["probabilities"].values()) - 1) < 1e-4 for row in rows)
    assert main(["predict", str(trained), str(paths[0])]) == 0
    assert capsys.readouterr().out.count("\t") == 2


def test_data_and_store(tmp_path, capsys):
    from visionshare.generators.pixels.family import Pixels
    from visionshare.store import create_store

    assert main(["data", "list"]) == 0
    assert "mnist" in capsys.readouterr().out
    assert main(["data", "info", "mnist"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "idx"
    assert main(["data", "verify", "mnist", "--data", str(tmp_path)]) == 1
    assert "missing" in capsys.readouterr().out
    images = np.zeros((9, 3, 3), np.uint8)
    create_store(tmp_path / "s", Pixels().fit(images), images).fill()
    for command in ("info", "verify", "repair"):
        assert main(["store", command, str(tmp_path / "s")]) == 0
    shard = next((tmp_path / "s" / "shards").iterdir())
    shard.write_bytes(b"broken")
    assert main(["store", "verify", str(tmp_path / "s")]) == 1
    assert main(["store", "repair", str(tmp_path / "s")]) == 0
    assert "dropped" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "digitz"], ["train", "digits", "--set", "learner.roundz=3"],
        ["train", "digits", "--memory", "much"], ["train", "digits", "--rounds", "many"],
        ["train", "digits", "--jobs", "0"], ["train", "mnist", "--data", "nowhere"],
        ["inspect", "nothing.safetensors"], ["inspect", __file__], ["evaluate"], ["fly"],
        ["store", "info", "nowhere"], ["data", "info", "nothing"], ["train", "--fast"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_errors_are_one_line_and_exit_code_2(arguments, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("VISIONSHARE_DATA", raising=False)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_predict_names_broken_images(trained, tmp_path, capsys):
    (tmp_path / "x.png").write_bytes(b"no image")
    assert main(["predict", str(trained), str(tmp_path / "x.png")]) == 2
    assert "x.png" in capsys.readouterr().err
    assert main(["predict", str(trained), str(tmp_path / "none-*.png")]) == 2


def test_debug_shows_the_traceback():
    command = [sys.executable, "-m", "visionshare.cli", "--debug", "inspect", "nothing"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" in said.stderr
    assert "ClassifierFileError" in said.stderr


def test_help_and_version(capsys):
    for arguments in (["--help"], ["train", "--help"], ["--version"], ["data", "--help"]):
        assert main(arguments) == 0
        assert "visionshare" in capsys.readouterr().out


def test_interrupt_is_one_line(monkeypatch, capsys, tmp_path):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("visionshare.recipes.train", stopped)
    assert main(["train", "digits", "--out", str(tmp_path)]) == 130
    assert "--resume" in capsys.readouterr().err
