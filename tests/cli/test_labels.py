"""Several labels from a table to predictions: train --labels, its report, predict."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from visionshare import load
from visionshare.cli.main import main
from visionshare.errors import InputError
from visionshare.export import onnx_program, run_onnx
from visionshare.export.c.program import c_program
from visionshare.service.answers import Served

NAMES = ("bar", "dot", "edge")


def _write(folder, rows, header=("path", "tags")):
    with open(folder / "things.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)
    return folder / "things.csv"


def _picture(has, rng):
    """Return a picture with a bar, a dot and an edge, or without."""
    picture = rng.integers(0, 50, (16, 16), np.uint8)
    if has[0]:
        picture[3:5, 2:14] += 180
    if has[1]:
        picture[9:12, 4:7] += 180
    if has[2]:
        picture[:, 13:15] += 120
    return picture


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("things")
    rng = np.random.default_rng(0)
    truth = rng.random((160, 3)) < (0.5, 0.4, 0.25)
    rows = []
    for i, has in enumerate(truth):
        Image.fromarray(_picture(has, rng)).save(folder / f"{i:03}.png")
        tags = ";".join(name for name, there in zip(NAMES, has, strict=True) if there)
        rows.append([f"{i:03}.png", tags])
    table = _write(folder, rows)
    out = folder / "out"
    assert main(["train", str(table), "--labels", "tags", "--time", "4", "--budget", "30000",
                 "--out", str(out), "--quiet", "--jobs", "1"]) == 0  # fmt: skip
    return folder, truth, out


def test_each_label_is_found(trained):
    _, _, out = trained
    figures = json.loads((out / "metrics.json").read_text())
    assert figures["test_mean_average_precision"] > 0.85
    assert [row["label"] for row in figures["test_labels"]] == list(NAMES)
    assert all(0 < row["threshold"] < 1 for row in figures["test_labels"])
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "average precision %" in report
    assert "mean average precision" in (out / "classifier.md").read_text(encoding="utf-8")


def test_predict_writes_all_labels_above_their_thresholds(trained, capsys, tmp_path):
    folder, truth, out = trained
    file = str(out / "classifier.safetensors")
    pictures = [str(folder / f"{i:03}.png") for i in range(20)]
    model = load(file)
    has = model.answer.has(model.predict_proba(pictures))
    assert (has == truth[:20]).mean() > 0.85
    capsys.readouterr()
    assert main(["predict", file, *pictures]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    expected = [text.split(";") if text else [] for text in model.predict(pictures)]
    assert [[cell for cell in line[1:] if cell in NAMES] for line in lines] == expected
    assert main(["predict", file, *pictures, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["labels"] for record in records] == expected
    assert main(["predict", file, *pictures, "--out", str(tmp_path / "said.csv")]) == 0
    with open(tmp_path / "said.csv", newline="") as table:
        said = [row["labels"] for row in csv.DictReader(table)]
    assert said == model.predict(pictures).tolist()
    assert model.score(pictures, said) == 1


def test_service_and_onnx_say_labels(trained):
    folder, _, out = trained
    model = load(out / "classifier.safetensors")
    rasters = model.rasters([str(folder / f"{i:03}.png") for i in range(4)])
    answers = Served(model).classify(rasters)
    assert [answer.label for answer in answers] == model.predict(rasters).tolist()
    with pytest.raises(InputError, match="several labels"):
        c_program(model)
    pytest.importorskip("onnxruntime")
    found = run_onnx(onnx_program(model), rasters)
    np.testing.assert_allclose(found.probabilities, model.predict_proba(rasters), atol=1e-5)


@pytest.mark.parametrize(
    ("header", "rows", "labels", "message"),
    [
        (("path", "tags"), ["a;b", "a;b", "a"], "tags", "'a' in all training images"),
        (("path", "tags"), ["a", "a", ""], "tags", "two labels or more"),
        (("path", "tags"), ["a", "b", ""], "marks", "no marks; it has path, tags"),
        (("path", "a", "b"), [("1", "0"), ("0", "1"), ("maybe", "0")], "a,b", "'maybe'"),
        (("path", "tags"), ["a", "b", ""], ",", "--labels"),
    ],
)
def test_what_are_no_labels_ends_before_work(tmp_path, capsys, header, rows, labels, message):
    for i in range(3):
        Image.new("L", (16, 16), 80 * i).save(tmp_path / f"{i}.png")
    cells = [
        (f"{i}.png", *(row if isinstance(row, tuple) else (row,))) for i, row in enumerate(rows)
    ]
    table = _write(tmp_path, cells, header)
    assert main(["train", str(table), "--labels", labels, "--out", str(tmp_path / "out")]) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_labels_are_no_values(tmp_path, capsys):
    table = _write(tmp_path, [])
    assert main(["train", str(table), "--labels", "tags", "--target", "tags"]) != 0
    assert "not beside --target" in capsys.readouterr().err
