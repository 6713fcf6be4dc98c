"""Several labels from a table to predictions: train --labels, its report, predict."""

import json
import shutil

import numpy as np
import pytest

from tests.cli.tables import is_refused, rows_of, train, write_table
from tests.export.test_c_families import run_example
from visionshare import load
from visionshare.cli.main import main
from visionshare.export import compile_classifier, onnx_program, run_onnx
from visionshare.export.c.program import c_program
from visionshare.service.answers import Served

NAMES = ("bar", "dot", "edge")


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
        tags = ";".join(name for name, there in zip(NAMES, has, strict=True) if there)
        rows.append([f"{i:03}.png", tags])
    table = write_table(folder, ("path", "tags"), rows, [_picture(has, rng) for has in truth])
    return folder, truth, train(table, "--labels", "tags")


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
    said = [row["labels"] for row in rows_of(tmp_path / "said.csv")]
    assert said == model.predict(pictures).tolist()
    assert model.score(pictures, said) == 1


@pytest.mark.whole_report
def test_evaluate_measures_each_label(trained, capsys, tmp_path):
    folder, truth, out = trained
    file, table = str(out / "classifier.safetensors"), str(folder / "table.csv")
    command = ["evaluate", file, table, "--jobs", "1"]
    wrong, page = tmp_path / "wrong.csv", tmp_path / "page.html"
    capsys.readouterr()
    assert main([*command, "--json", "--errors", str(wrong), "--report", str(page)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["images"] == 160
    assert figures["mean_average_precision"] > 0.85
    model = load(file)
    said = model.predict([str(folder / f"{i:03}.png") for i in range(160)])
    has = np.array([[name in text.split(";") for name in NAMES] for text in said])
    for row, found, expected in zip(figures["labels"], has.T, truth.T, strict=True):
        assert row["precision"] == pytest.approx((found & expected).sum() / found.sum())
        assert row["recall"] == pytest.approx((found & expected).sum() / expected.sum())
    assert len(rows_of(wrong)) == int((has != truth).any(axis=1).sum())
    assert "average precision %" in page.read_text(encoding="utf-8")
    # A column for each label is read as well; labels that the classifier has not are refused.
    rows = [(f"{i:03}.png", *map(int, row)) for i, row in enumerate(truth)]
    other = write_table(tmp_path, ("path", *NAMES), rows)
    for name, *_ in rows:
        shutil.copy(folder / name, tmp_path / name)
    command = ["evaluate", file, str(other), "--labels", ",".join(NAMES), "--jobs", "1"]
    assert main(command) == 0
    assert "mean average precision of 3 labels" in capsys.readouterr().out
    strange = write_table(tmp_path, ("path", "tags"), [("000.png", "cat;bar")])
    assert main(["evaluate", file, str(strange)]) != 0
    assert "'cat'" in capsys.readouterr().err
    assert main(["evaluate", file, table, "--target", "tags"]) != 0
    assert "--target" in capsys.readouterr().err


def test_service_onnx_and_c_say_labels(trained, tmp_path):
    folder, _, out = trained
    model = load(out / "classifier.safetensors")
    rasters = model.rasters([str(folder / f"{i:03}.png") for i in range(30)])
    said = model.predict(rasters).tolist()
    assert [answer.label for answer in Served(model).classify(rasters)] == said
    gcc = shutil.which("gcc")
    if gcc is not None:
        program = c_program(model, "things", probabilities=True)
        scores, labels = run_example(tmp_path, program, rasters, gcc)
        assert labels == said
        np.testing.assert_allclose(scores, model.decision_function(rasters), rtol=1e-4, atol=1e-4)
        compiled = compile_classifier(model, cache_dir=tmp_path / "cache")
        assert compiled.predict(rasters).tolist() == said
    pytest.importorskip("onnxruntime")
    found = run_onnx(onnx_program(model), rasters)
    np.testing.assert_allclose(found.probabilities, model.predict_proba(rasters), atol=1e-5)
    np.testing.assert_array_equal(found.has, model.answer.has(model.predict_proba(rasters)))


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
    rows = [
        (f"{i}.png", *(row if isinstance(row, tuple) else (row,))) for i, row in enumerate(rows)
    ]
    pictures = [np.full((16, 16), 80 * i, np.uint8) for i in range(3)]
    table = write_table(tmp_path, header, rows, pictures)
    is_refused(capsys, table, message, "--labels", labels)


def test_labels_are_no_values(tmp_path, capsys):
    table = write_table(tmp_path, ("path", "tags"), [])
    is_refused(capsys, table, "not beside --target", "--labels", "tags", "--target", "tags")
