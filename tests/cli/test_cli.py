"""The command line as a person uses it."""

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare.cli.main import main
from visionshare.datasets import load_dataset

SMALL = ["--rounds", "6", "--set", "features.parameters.n_templates=20", "--set", "data.limit=400"]
SMALL += ["--set", "features.parameters.n_patches=1000"]


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """Return the folder of a training, and what it said on standard output and error."""
    out = tmp_path_factory.mktemp("cli")
    said, warned = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(warned):
        assert main(["--quiet", "train", "digits", "--out", str(out), *SMALL]) == 0
    return out, said.getvalue(), warned.getvalue()


@pytest.fixture(scope="module")
def trained(training):
    return training[0] / "classifier.safetensors"


def test_train_says_what_matters(training):
    _, said, warned = training
    for word in ("test error", "features     6", "multiply-accumulates", "report.html"):
        assert word in said
    assert warned == ""


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
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("visionshare.recipes.train", stopped)
    assert main(["train", "digits", "--out", str(tmp_path)]) == 130
    assert "--resume" in capsys.readouterr().err


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return a folder of two classes of digits, without parts."""
    folder = tmp_path_factory.mktemp("own") / "photos"
    digits = load_dataset("digits", "train")
    for name in "01":
        (folder / name).mkdir(parents=True)
        for i in np.flatnonzero(digits.labels == int(name))[:40]:
            Image.fromarray(digits.images[i]).save(folder / name / f"{i}.png")
    return folder


QUICK = ["--recipe", "digits", "--rounds", "3", "--set", "features.parameters.n_templates=10"]


def test_train_on_pictures_says_what_it_decided(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(photos), *QUICK, "--balanced", "--gray", "--size", "12x10"]) == 0
    said = capsys.readouterr().out
    for text in (
        "80 pictures of 2 classes", "size 12×10", "gray: as asked for", "recipe digits",
        "balanced: each class", "no test set found; holding out 16 of 80 images (20 % per class)",
        "of 16 held out)", "out/photos/classifier.safetensors",
    ):  # fmt: skip
        assert text in said
    figures = json.loads((tmp_path / "out" / "photos" / "metrics.json").read_text())
    assert figures["test_origin"] == "held out"
    assert main(["train", str(photos), *QUICK, "--test-fraction", "0"]) == 0
    assert "test error   none: there are no test pictures" in capsys.readouterr().out


def test_train_on_pictures_searches_and_resumes_without_a_search(photos, tmp_path, capsys):
    # No layers of templates cost as little: what is tried is learned in a moment.
    call = ["train", str(photos), "--out", str(tmp_path / "out"), "--budget", "150"]
    assert main(call) == 0
    said, warned = capsys.readouterr()
    for text in ("trial 1 of about", "chosen  ", "because  ", "recipe  ", "of 16 held out)"):
        assert text in said
    assert "warning: only one structure was tried" in warned
    assert "a larger --budget allows more" in warned
    assert "not clearly better" not in warned
    figures = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert figures["macs"] <= 150
    names = {"classifier.safetensors", "metrics.json", "path.csv", "report.html", "recipe.toml"}
    assert names <= {path.name for path in (tmp_path / "out").iterdir()}
    before = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert main([*call, "--resume"]) == 0
    said = capsys.readouterr().out
    assert "tried" not in said
    assert "chosen before" in said
    again = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    np.testing.assert_array_equal(again.weights, before.weights)
    assert main([*call[:-1], "200", "--resume"]) == 2
    assert "another budget" in capsys.readouterr().err


def test_a_folder_for_validation_chooses_among_trials(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    digits = load_dataset("digits", "train")
    # The classes of the validation pictures are swapped: trials that are compared on them err.
    for part, label, swapped in (
        ("train", 0, 0),
        ("train", 1, 1),
        ("valid", 0, 1),
        ("valid", 1, 0),
    ):
        folder = tmp_path / "photos" / part / str(swapped)
        folder.mkdir(parents=True)
        first, last = (0, 40) if part == "train" else (40, 60)
        for i in np.flatnonzero(digits.labels == label)[first:last]:
            Image.fromarray(digits.images[i]).save(folder / f"{i}.png")
    assert main(["train", "photos", "--budget", "150"]) == 0
    said = capsys.readouterr().out
    assert "40 validation pictures are used to compare trials, not for training" in said
    (error,) = re.findall(r"because .*\(error ([\d.]+) %\)", said)
    assert float(error) > 80
    figures = json.loads((tmp_path / "out" / "photos" / "metrics.json").read_text())
    assert (figures["test_origin"], figures["test_images"]) == ("held out", 16)
    assert figures["train_images"] == 64
    assert figures["test_error_rate"] < 0.2


def test_options_that_are_not_used_are_errors(photos, tmp_path, capsys):
    def said(*arguments):
        assert main(["train", *arguments, "--out", str(tmp_path / "out")]) == 2
        return capsys.readouterr().err

    assert f"visionshare train {photos}" in said("digits", "--data", str(photos))
    assert "--data" in said(str(photos), "--data", str(tmp_path))
    assert f"visionshare train {photos}" in said("mnist", "--data", str(photos))
    for option in (["--balanced"], ["--gray"], ["--size", "9"], ["--skip-broken"]):
        assert option[0] in said("digits", *option)
    assert "--color" in said("digits", "--color")
    assert "--test-fraction: got 2.0" in said(str(photos), "--test-fraction", "2")
    assert "no folder, file or pipeline named 'no/such/folder'" in said("no/such/folder")
    assert "no folder, file or pipeline named 'none.toml'" in said("none.toml")
    assert "no recipe file or pipeline named 'none.toml'" in said(
        str(photos), "--recipe", "none.toml"
    )
    assert "Did you mean 'photos'" in said("photoz")
    assert "--size: got '0x3'" in said(str(photos), "--size", "0x3")
    for option in (["--time", "5m"], ["--budget", "200k"]):
        assert "visionshare train FOLDER" in said("digits", *option)
        assert "without --recipe" in said(str(photos), "--recipe", "photos", *option)
    assert "--time: got 'soon'" in said(str(photos), "--time", "soon")
    assert "--budget: got '3 apples'" in said(str(photos), "--budget", "3 apples")
    assert "--recipe photos" in said(str(photos), "--rounds", "3")
    assert not (tmp_path / "out").exists()


def test_check_tells_problems_and_draws_a_sheet(photos, tmp_path, capsys):
    sheet = tmp_path / "sheet.png"
    assert main(["data", "check", str(photos), "--sheet", str(sheet)]) == 0
    said = capsys.readouterr().out
    for text in ("80 of 2 classes", "0: 40", "8×8", "modes        L 80", "broken       0"):
        assert text in said
    with Image.open(sheet) as picture:
        assert picture.size == (950, 140)
    messy = tmp_path / "messy"
    for i, part in enumerate(("train/a", "train/b", "test/a", "test/b")):
        (messy / part).mkdir(parents=True)
        Image.new("L", (20, 20), 50 * min(i, 2)).save(messy / part / "1.png")
    Image.new("L", (20, 20)).save(messy / "test" / "b" / "copy.png")
    (messy / "train" / "a" / "broken.png").write_bytes(b"x")
    assert main(["data", "check", str(messy), "--sheet", str(sheet), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["classes"]["b"] == {"train": 1, "test": 2, "validation": 0}
    assert (len(found["broken"]), len(found["copies"])) == (1, 2)
    assert (len(found["train_and_test"]), len(found["several_classes"])) == (1, 2)
    assert main(["data", "check", str(messy), "--sheet", str(sheet)]) == 1
    said = capsys.readouterr().out
    assert "broken.png: cannot be read" in said
    assert "fewer than 10 pictures to train on: a (1), b (1)" in said


def test_check_says_that_nothing_can_be_kept_aside(tmp_path, capsys):
    sheet = tmp_path / "sheet.png"
    for name in "ab":
        (tmp_path / "two" / name).mkdir(parents=True)
        Image.new("L", (20, 20), ord(name)).save(tmp_path / "two" / name / "1.png")
    assert main(["data", "check", str(tmp_path / "two"), "--sheet", str(sheet)]) == 0
    assert "none can be held out: no class has two" in capsys.readouterr().out
    (tmp_path / "two" / "b" / "1.png").unlink()
    assert main(["data", "check", str(tmp_path / "two"), "--sheet", str(sheet)]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 class," in said
    assert "one class: a classifier needs two at least" in said


@pytest.mark.parametrize(
    "words",
    [["digits", "--out", "https://host/run"], ["s3://bucket/train-*.tar", "--time", "5s"]],
)
def test_object_storage_is_refused_before_work(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    assert "://" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
