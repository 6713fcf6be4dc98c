"""The commands that explain and evaluate, as a user calls them."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels, load
from visionshare.classifier import explain
from visionshare.cli.main import main


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the file of a classifier that takes the left half for "left", and labeled pictures."""
    folder = tmp_path_factory.mktemp("explained")
    weights = np.where(np.arange(16) % 4 < 2, 1.0, -1.0)
    model = CompactClassifier(
        Pixels().fit(np.zeros((1, 4, 4))),
        np.stack([weights, -weights]),
        np.zeros(2),
        np.array(["left", "right"]),
    )
    model.save(folder / "classifier.safetensors")
    for name, cols in (("left", slice(0, 10)), ("right", slice(10, 20))):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(3):
            picture = np.full((10, 20), 20 * i, np.uint8)
            picture[:, cols] = 250
            Image.fromarray(picture).save(folder / "photos" / name / f"{i}.png")
    # A picture in the wrong folder, with a name that a spreadsheet would calculate.
    (folder / "photos/left/0.png").rename(folder / "photos/right/=0.png")
    return folder


def test_a_picture_is_explained(trained, capsys):
    picture, out = trained / "photos/left/1.png", trained / "why.png"
    call = ["explain", str(trained / "classifier.safetensors"), str(picture)]
    assert main([*call, "--out", str(out), "--top", "3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("left, probability ")
    rows = [line for line in said.splitlines() if "pixels" in line]
    assert len(rows) == 3
    assert "rows 0–" in said
    assert "13 other features" in said
    drawn = np.asarray(Image.open(out))
    assert drawn.shape[0] == 280
    assert drawn.shape[1] > 2 * 560


def test_json_adds_up(trained, capsys):
    picture = str(trained / "photos/right/1.png")
    call = ["explain", str(trained / "classifier.safetensors"), picture, "--json", "--top", "99"]
    assert main([*call, "--class", "left"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["label"], record["explained"], record["size"]) == ("right", "left", [10, 20])
    for name in ("left", "right"):
        added = sum(feature["contributions"][name] for feature in record["features"])
        assert added + record["base"][name] == pytest.approx(record["scores"][name], abs=1e-4)
    assert {tuple(f["box"])[1] - f["box"][0] for f in record["features"]} == {2.5}
    model = load(trained / "classifier.safetensors")
    assert explain(model, np.ones((4, 4))).size == (4, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--class", "up"], "--class: got 'up'; accepted: one of 'left', 'right'"),
        (["--out", "why.txt"], "--out: got 'why.txt'; accepted: a file .png"),
        (["--top", "0"], "--top"),
    ],
)
def test_wrong_options_are_named(trained, capsys, arguments, said):
    call = ["explain", str(trained / "classifier.safetensors"), str(trained / "photos/left/1.png")]
    assert main([*call, *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.whole_report
def test_evaluation_writes_a_report_and_the_mistakes(trained, tmp_path, capsys):
    report, errors = tmp_path / "report.html", tmp_path / "errors.csv"
    call = ["evaluate", str(trained / "classifier.safetensors"), str(trained / "photos")]
    assert main([*call, "--report", str(report), "--errors", str(errors), "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("16.67 % error (1 of 6); 95 % interval 3.01 to 56.35 %")
    assert "33.33 % error of always answering right" in said
    with open(errors, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["image"], r["true"], r["predicted"]) for r in rows] == [
        ("right/=0.png", "right", "left")
    ]
    assert float(rows[0]["confidence"]) + float(rows[0]["probability_of_true"]) == pytest.approx(1)
    page = report.read_text("utf-8")
    assert "<small>right/<wbr>=0.png</small>" in page
    assert "not known here" in page
    assert main([*call, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["error_interval"] == pytest.approx([0.0301, 0.5635], abs=1e-4)
    assert figures["by_class"]["right"]["recall"] == 0.75
    assert figures["error_rate_by_class"] == {"left": 0.0, "right": 0.25}


@pytest.mark.parametrize("option", ["--report", "--errors"])
def test_files_of_another_kind_are_named_first(option, tmp_path, capsys):
    broken = tmp_path / "broken.safetensors"
    broken.touch()
    assert main(["evaluate", str(broken), "digits", option, "x.txt"]) == 2
    assert f"{option}: got 'x.txt'" in capsys.readouterr().err


@pytest.mark.whole_report
def test_an_evaluation_says_which_part_it_is_of(trained, tmp_path, capsys):
    classifier, photos = str(trained / "classifier.safetensors"), trained / "photos"
    report = tmp_path / "a.html"
    assert main(["evaluate", classifier, str(photos), "--report", str(report)]) == 0
    assert "all pictures are evaluated" in capsys.readouterr().err
    assert "images of photos (all of it)" in report.read_text()
    shutil.copytree(photos, tmp_path / "parts" / "test")
    shutil.copytree(photos, tmp_path / "parts" / "train")
    assert main(["evaluate", classifier, str(tmp_path / "parts"), "--report", str(report)]) == 0
    assert "note" not in capsys.readouterr().err
    assert "images of parts (test)" in report.read_text()


def test_other_images_and_other_classes_are_named(trained, tmp_path, capsys):
    classifier = str(trained / "classifier.safetensors")
    assert main(["evaluate", classifier, "digits"]) == 2
    said = capsys.readouterr().err
    assert "digits: images are 8×8, but the classifier takes 4×4" in said
    assert "train on images like these" in said
    shutil.copytree(trained / "photos" / "left", tmp_path / "things" / "up")
    shutil.copytree(trained / "photos" / "left", tmp_path / "things" / "left")
    assert main(["evaluate", classifier, str(tmp_path / "things")]) == 2
    assert "'up' are unknown to the classifier of 'left', 'right'\n" in capsys.readouterr().err
