"""Pictures of no class in recipes and on the command line: an unknown folder, figures, predict."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from visionshare import load
from visionshare.cli.application import app
from visionshare.errors import RecipeError
from visionshare.recipes import load_recipe, train

SETTINGS = ["learner.rounds=4", "features.parameters.n_templates=20", "learner.n_backward=0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of bars that lie or stand, and of unknown noise."""
    place = tmp_path_factory.mktemp("pictures") / "bars"
    rng = np.random.default_rng(0)
    for number in range(240):
        name = ("lying", "standing", "unknown")[number % 3]
        image = rng.integers(0, 60, (12, 12), np.uint8)
        position = int(rng.integers(1, 10))
        if name == "unknown":
            image *= 4
        else:
            (image if name == "lying" else image.T)[position : position + 2] = 220
        (place / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / name / f"{number}.png")
    return place


def made(folder: Path, *settings: str) -> list[str]:
    return [f"data.source={json.dumps(str(folder))}", "data.height=12", "data.width=12",
        "preprocessing={polarity='light_on_dark'}",
            *SETTINGS, *settings]  # fmt: skip


@pytest.mark.whole_report
def test_a_folder_of_unknown_pictures_is_no_class(folder: Path, tmp_path: Path) -> None:
    recipe = load_recipe("digits", made(folder, "unknown.reject=0.05"))
    result = train(recipe, tmp_path / "out")
    model = load(result.out / "classifier.safetensors")
    assert model.classes_.tolist() == ["lying", "standing"]
    assert model.unknown is not None
    assert model.unknown.reject == 0.05
    figures = json.loads((result.out / "metrics.json").read_text())
    # A fifth of 160 tests; 40 of the others calibrate, at most 30 %.
    assert (figures["test_images"], figures["train_images"]) == (32, 90)
    assert figures["test_refused"] <= 8
    classifier = str(result.out / "classifier.safetensors")
    said = CliRunner().invoke(app, ["predict", classifier, str(folder), "--top", "2"])
    assert said.exit_code == 0, said.output
    rows = [line.split("\t") for line in said.output.splitlines()]
    assert {len(row) for row in rows} == {5}
    of_noise = [row[1] == "unknown" for row in rows if Path(row[0]).parent.name == "unknown"]
    others = [row[1] == "unknown" for row in rows if Path(row[0]).parent.name != "unknown"]
    assert np.mean(of_noise) > 0.9
    assert np.mean(others) < 0.2
    Image.new("L", (12, 12), 140).save(tmp_path / "blank.png")
    said = CliRunner().invoke(app, ["explain", classifier, str(tmp_path / "blank.png")])
    assert "refused as unknown" in said.output
    assert "test pictures are answered “unknown”" in (result.out / "report.html").read_text("utf-8")
    said = CliRunner().invoke(
        app, ["predict", classifier, str(folder), "--threshold", "0.5", "--json"]
    )
    records = [json.loads(line) for line in said.output.splitlines()]
    assert all((r["class"] == "unknown") == (r["known"] < 0.5) for r in records)
    assert sum(r["class"] == "unknown" for r in records) > sum(map(bool, of_noise))


def test_without_the_section_it_is_a_class_and_nothing_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    result = train(load_recipe("digits", made(folder)), tmp_path / "out")
    assert "unknown" in result.classifier.classes_
    assert result.classifier.unknown is None
    file = str(result.out / "classifier.safetensors")
    said = CliRunner().invoke(app, ["predict", file, str(folder), "--threshold", "0.5"])
    assert said.exit_code != 0
    assert "--reject" in str(said.exception)


def test_a_folder_without_pictures_is_refused(folder: Path, tmp_path: Path) -> None:
    settings = made(folder, f"unknown.pictures={json.dumps(str(tmp_path))}")
    with pytest.raises(RecipeError, match="no folder of pictures"):
        train(load_recipe("digits", settings), tmp_path / "out")
    # It is checked before anything is learned.
    assert not list((tmp_path / "out").glob("**/*.safetensors"))


def test_a_broken_unknown_picture_is_left_out(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Image.new("L", (12, 12), 140).save(tmp_path / "blank.png")
    (tmp_path / "broken.png").write_text("no picture")
    settings = made(folder, f"unknown.pictures={json.dumps(str(tmp_path))}")
    result = train(load_recipe("digits", settings), tmp_path / "out")
    assert result.classifier.unknown is not None
    assert "broken.png" in caplog.text


@pytest.mark.parametrize(
    "options", [["--reject", "1.5"], ["--unknown", "."], ["--reject", "0.01", "--unknown", "gone"]]
)
def test_options_are_checked(folder: Path, options: list[str]) -> None:
    said = CliRunner().invoke(app, ["train", str(folder), *options])
    assert said.exit_code != 0
    assert options[-2] in str(said.exception)
