"""No command writes over what it reads, or over what it did not write."""

import os

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.cli.main import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder to work in, with a classifier, pictures and a list of them."""
    monkeypatch.chdir(tmp_path)
    weights = np.where(np.arange(16) % 4 < 2, 1.0, -1.0)
    model = CompactClassifier(
        Pixels().fit(np.zeros((1, 4, 4))),
        np.stack([weights, -weights]),
        np.zeros(2),
        np.array(["left", "right"]),
    )
    model.save("c.safetensors")
    for name, cols in (("left", slice(0, 10)), ("right", slice(10, 20))):
        os.makedirs(f"photos/{name}")
        for i in range(3):
            picture = np.full((10, 20), 20 * i, np.uint8)
            picture[:, cols] = 250
            Image.fromarray(picture).save(f"photos/{name}/{name}{i}.png")
    (tmp_path / "list.csv").write_text(
        "image,label\nphotos/left/left1.png,left\nphotos/right/right1.png,right\n"
    )
    return tmp_path


def _content(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "call",
    [
        "prepare c.safetensors photos/left --out photos/left",
        "prepare c.safetensors photos/left/left1.png --out photos/../photos/left",
        "prepare c.safetensors photos/left --out new --raw photos/left/left1.png",
        "prepare c.safetensors photos/left --out new --raw c.safetensors",
        "explain c.safetensors photos/left/left1.png --out photos/left/left1.png",
        "segment c.safetensors photos/left/left1.png --out photos/left/left1.png",
        "segment c.safetensors photos/left/left1.png --out m.png --overlay photos/left/left1.png",
        "segment c.safetensors photos/left/left1.png --out m.png --overlay m.png",
        "evaluate c.safetensors list.csv --errors list.csv",
        "data check photos --sheet photos/left/left1.png",
        "transfer photos c.safetensors --out c.safetensors",
        "transfer photos . --out c.safetensors",
    ],
)
def test_what_is_read_is_not_written(here, capsys, call):
    before = _content(here)
    assert main(call.split()) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: --")
    assert said.err.count("\n") == 1
    assert not said.out
    assert _content(here) == before


def test_a_link_to_what_is_read_is_not_written(here, capsys):
    os.mkdir("made")
    os.symlink(here / "photos/left/left1.png", "made/left1.png")
    assert main(["prepare", "c.safetensors", "photos/left", "--out", "made"]) == 2
    assert "made/left1.png, which the command reads" in capsys.readouterr().err


def test_prepared_pictures_replace_their_own_kind_alone(here, capsys):
    call = ["prepare", "c.safetensors", "photos/left", "--out", "made", "--raw", "made/all.raw"]
    assert main(call) == 0
    first = _content(here / "made")
    assert main(call) == 0
    assert _content(here / "made") == first
    Image.new("L", (5, 5)).save("made/left2.png")
    before = _content(here)
    capsys.readouterr()
    assert main(call) == 2
    said = capsys.readouterr()
    assert "--out: got 'made/left2.png, which this command did not write'" in said.err
    assert not said.out
    assert _content(here) == before


def test_a_sheet_replaces_a_sheet(here):
    call = ["data", "check", "photos", "--sheet", "photos/left/sheet.png"]
    assert main(call) == 0
    assert main(call) == 0
