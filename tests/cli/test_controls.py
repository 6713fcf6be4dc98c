"""Names of classes and files that give orders to terminals never reach one, nor a file."""

import json
import re
import sys

import numpy as np
import pytest
from PIL import Image

from visionshare import CompactClassifier, Pixels
from visionshare.classifier import model_card
from visionshare.cli.main import main
from visionshare.cli.text import cell
from visionshare.errors import ExportError
from visionshare.errors.names import without_controls
from visionshare.export.toolchain import compiler

# Colors, clears the screen, sets a title; CSI of one byte; rings; deletes.
HOSTILE = ["\x1b[31mred", "\x1b[2J\x1b]0;title\x07", "c1\x9b2J", "bell\x07 and \x7f", "\x00"]
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@pytest.fixture
def classifier():
    """Return a classifier of hostile classes, and metadata as a stranger may write them."""
    family = Pixels().fit(np.zeros((1, 8, 8), np.uint8))
    weights = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    metadata = {"recipe": {"data": {"source": "photos/\x1b[32mgreen"}}, "training_data": "\x1b[1m"}
    return CompactClassifier(
        family, weights, np.zeros(5, np.float32), np.array(HOSTILE), metadata=metadata
    )


def test_controls_become_escapes_and_lines_stay():
    for name in HOSTILE:
        assert not CONTROLS.search(without_controls(name))
        assert not CONTROLS.search(cell(name))
    assert without_controls("é\t×\r\n") == "é\t×\r\n"


def test_cards_carry_no_controls(classifier):
    card = model_card(classifier, "na\x1b[31mme", license="\x1b[0m", file="\x9bx.safetensors")
    assert not CONTROLS.search(card)
    assert "\\x1b[31mred" in card


@pytest.mark.skipif(sys.platform == "win32", reason="such names of files are refused there")
def test_no_command_writes_controls(classifier, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "r\x1b[31mun"
    run.mkdir()
    classifier.save(run / "classifier.safetensors", card=True)
    rng = np.random.default_rng(0)
    for name in ("\x1b[31mred", "c1\x9b2J"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(3):
            picture = Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8))
            picture.save(tmp_path / "pictures" / name / f"{i}\x1b[2J.png")
    picture = "pictures/\x1b[31mred/0\x1b[2J.png"
    few = ["--positives", "2"]
    calls = [
        ["predict", str(run), "pictures"],
        ["predict", str(run), "pictures", "--json"],
        ["predict", str(run), "pictures", "--out", "labels.csv"],
        ["predict", str(run), "pictures", "--out", "labels.jsonl"],
        ["evaluate", str(run), "pictures", "--report", "report.html", "--errors", "errors.csv"],
        ["evaluate", str(run), "pictures", "--json"],
        ["inspect", str(run)],
        ["inspect", str(run), "--json"],
        ["explain", str(run), picture],
        ["explain", str(run), picture, "--json"],
        ["segment", str(run), picture, "--out", "map.png"],
        ["extract", str(run), "pictures", "--out", "store"],
        ["prepare", str(run), "pictures", "--out", "prepared"],
        ["export", str(run), "--out", "c"],
        ["transfer", "pictures", str(run), "--out", "new.safetensors", *few],
        ["train", "pictures", "--recipe", "digits", "--rounds", "1", "--test-fraction", "0.4"],
        ["data", "check", "pictures", "--sheet", "sheet.png"],
        ["data", "check", "pictures", "--sheet", "sheet.png", "--json"],
        ["predict", str(run), "\x1b[31mnothing"],
        ["inspect", "\x1b[31mnothing"],
        ["train", "\x1b[31mnothing"],
        ["\x1b[31mnothing"],
    ]
    try:
        compiler()
    except ExportError:
        calls = [words for words in calls if words[0] != "export"]
    for words in calls:
        code = main(words)
        said = capsys.readouterr()
        assert code == (2 if "nothing" in words[-1] else 0), (words, said.err)
        assert not CONTROLS.search(said.out), words
        assert not CONTROLS.search(said.err), words
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    texts = {".csv", ".jsonl", ".json", ".html", ".md", ".c", ".h", ".toml", ".txt", ""}
    texts = [path for path in written if path.suffix in texts and "pictures" not in path.parts]
    assert {path.suffix for path in texts} >= {".csv", ".jsonl", ".html", ".md", ".c", ".txt"}
    for path in texts:
        assert not CONTROLS.search(path.read_text("utf-8")), path
    # In JSON the names are whole.
    lines = (tmp_path / "labels.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["image"] for line in lines} >= {picture}
