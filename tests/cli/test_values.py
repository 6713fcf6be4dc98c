"""Values from a table to predictions: train --target, its report, predict."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.cli.tables import is_refused, rows_of, train, write_table
from visionshare import load
from visionshare.cli.main import main
from visionshare.service.answers import Served


def _bars(folder, values, column="Height"):
    """Write pictures of bars, and a table of their heights."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 40, (len(values), 16, 16), np.uint8)
    for picture, value in zip(pictures, values, strict=True):
        height = float(value) if str(value).replace(".", "").isdigit() else 3.0
        picture[16 - round(height) :] += 180
    rows = [(f"{i:03}.png", value) for i, value in enumerate(values)]
    return write_table(folder, ("path", column), rows, pictures)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bars")
    values = np.random.default_rng(1).integers(1, 15, 150) * 1.0
    return folder, values, train(_bars(folder, values), "--target", "height")


def test_the_mean_absolute_error_is_far_below_that_of_the_median(trained):
    _, _, out = trained
    figures = json.loads((out / "metrics.json").read_text())
    low, high = figures["test_interval"]
    assert low <= figures["test_mean_absolute_error"] <= high
    assert figures["test_mean_absolute_error"] < 0.5 * figures["test_constant_error"]
    assert figures["test_errors"] is None
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "Worst pictures" in report
    assert "predicted − true" in report
    assert "mean absolute error" in report
    assert "mean absolute error" in (out / "classifier.md").read_text(encoding="utf-8")


def test_predict_writes_values(trained, capsys, tmp_path):
    folder, values, out = trained
    model = str(out / "classifier.safetensors")
    pictures = [str(folder / f"{i:03}.png") for i in range(8)]
    capsys.readouterr()
    assert main(["predict", model, *pictures]) == 0
    said = [float(line.split("\t")[1]) for line in capsys.readouterr().out.splitlines()]
    assert np.abs(np.array(said) - values[:8]).mean() < 2
    expected = load(model).predict(pictures)
    np.testing.assert_allclose(said, expected, rtol=1e-4)
    assert main(["predict", model, *pictures, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose([record["value"] for record in records], expected, rtol=1e-5)
    table = tmp_path / "said.csv"
    assert main(["predict", model, *pictures, "--out", str(table)]) == 0
    rows = rows_of(table)
    np.testing.assert_allclose([float(row["value"]) for row in rows], expected, rtol=1e-5)
    assert main(["predict", model, *pictures, "--top", "2"]) != 0
    assert "--top" in capsys.readouterr().err


def test_values_are_not_learned_on(trained, capsys):
    folder, _, out = trained
    assert main(["train", str(folder), "--from", str(out), "--out", str(folder / "on")]) != 0
    assert "a classifier of classes" in capsys.readouterr().err


@pytest.mark.whole_report
def test_evaluate_measures_values(trained, capsys, tmp_path):
    folder, values, out = trained
    file = str(out / "classifier.safetensors")
    worst, page = tmp_path / "worst.csv", tmp_path / "page.html"
    capsys.readouterr()
    command = ["evaluate", file, str(folder / "table.csv"), "--jobs", "1", "--report", str(page)]
    assert main([*command, "--json", "--errors", str(worst)]) == 0
    figures = json.loads(capsys.readouterr().out)
    said = load(file).predict([str(folder / f"{i:03}.png") for i in range(150)])
    off = np.abs(said - values)
    assert figures["mean_absolute_error"] == pytest.approx(off.mean(), rel=1e-5)
    assert figures["interval"][0] < off.mean() < figures["interval"][1]
    first = rows_of(worst)[0]
    assert abs(float(first["error"])) == pytest.approx(off.max(), rel=1e-4)
    assert "Worst pictures" in page.read_text(encoding="utf-8")
    assert main(command) == 0
    assert "mean absolute error (95 % interval" in capsys.readouterr().out
    assert main(["evaluate", file, str(folder / "table.csv"), "--target", "depth"]) != 0
    assert "no depth" in capsys.readouterr().err
    assert main(["evaluate", file, str(folder), "--labels", "height"]) != 0
    assert "--labels" in capsys.readouterr().err


def test_the_service_says_the_value(trained):
    folder, _, out = trained
    model = load(out / "classifier.safetensors")
    raster = model.rasters([str(folder / "000.png")])
    answer = Served(model).classify(raster)[0]
    assert answer.value == pytest.approx(model.predict(raster)[0], abs=1e-5)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1, 2, 3, "tall"], ["--target", "height"], "'tall'"),
        ([1, 2, 3, ""], ["--target", "height"], "no height"),
        ([1, 2, 3, "nan"], ["--target", "height"], "finite numbers"),
        ([4, 4, 4, 4], ["--target", "height"], "two different values"),
        ([1, 2, 3, 4], ["--target", "weight"], "no weight; it has path, height"),
        ([1, 2, 3, 4], ["--target", "height", "--periodic", "0"], "--periodic"),
        ([1, 2, 3, 4], ["--periodic", "360"], "beside --target"),
        ([1, 2, 3, 4], ["--target", "height", "--reject", "0.01"], "--reject"),
        ([1, 2, 3, 4], ["--target", "height", "--teacher", "self"], "teacher"),
    ],
)
def test_what_is_no_value_ends_before_work(tmp_path, capsys, values, options, message):
    is_refused(capsys, _bars(tmp_path, values, "height"), message, *options)


def test_a_folder_of_classes_has_no_values(tmp_path, capsys):
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.new("L", (8, 8)).save(tmp_path / name / "0.png")
    assert main(["train", str(tmp_path), "--target", "value"]) != 0
    assert "from a table" in capsys.readouterr().err
