"""`data check --labels` and `suggest`: tables that can be corrected and trained from."""

import csv

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from visionshare import CompactClassifier, Pixels
from visionshare.cli.application import app
from visionshare.datasets.readers.registry import find_pictures


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of bars that lie or stand; one of them is in the wrong class."""
    rng = np.random.default_rng(0)
    for number in range(80):
        image = rng.integers(0, 60, (12, 12), np.uint8)
        (image if number % 2 else image.T)[int(rng.integers(2, 9)) :][:2] = 220
        name = ("lying", "standing")[(number + (number != 7)) % 2]
        (tmp_path / "bars" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "bars" / name / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bars"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_wrong_label_is_first_and_the_table_can_be_trained_from(folder, tmp_path):
    said = CliRunner().invoke(app, ["data", "check", str(folder), "--size", "12", "--labels"])
    assert said.exit_code == 0, said.output
    rows = rows_of(tmp_path / "bars-labels.csv")
    assert len(rows) == 80
    assert rows[0]["path"].endswith("/7.png")
    assert rows[0]["suggested"] != rows[0]["label"]
    assert "7.png" in (tmp_path / "bars-labels.html").read_text()
    found = find_pictures("bars-labels.csv")
    assert found.classes == ("lying", "standing")
    assert len(found) == 80
    # The same command again replaces what it wrote.
    again = CliRunner().invoke(app, ["data", "check", str(folder), "--size", "12", "--labels"])
    assert again.exit_code == 0, again.output


def test_foreign_files_are_kept(folder, tmp_path):
    (tmp_path / "bars-labels.csv").write_text("mine")
    said = CliRunner().invoke(app, ["data", "check", str(folder), "--labels"])
    assert said.exit_code != 0
    assert (tmp_path / "bars-labels.csv").read_text() == "mine"


def test_suggested_pictures_are_listed_with_the_likeliest_label(folder, tmp_path):
    family = Pixels().fit(np.zeros((1, 12, 12)))
    weights = np.random.default_rng(0).normal(size=(2, 144))
    model = CompactClassifier(family, weights, np.zeros(2), np.array(["lying", "standing"]))
    model.save(tmp_path / "c.safetensors")
    (folder / "lying" / "broken.png").write_bytes(b"no picture")
    arguments = ["suggest", "c.safetensors", "bars", "--count", "6", "--out", "next.csv"]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said.output
    rows = rows_of(tmp_path / "next.csv")
    assert len(rows) == 6
    assert all(row["label"] == row["suggested"] for row in rows)
    assert len(find_pictures("next.csv")) == 6
    assert (tmp_path / "next.html").read_text().count("<figure>") == 6
