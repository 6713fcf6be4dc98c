"""Model cards: what stands in them, for hubs and for people."""

import json

import numpy as np
import pytest
import yaml

from visionshare import CompactClassifier, Pixels
from visionshare.classifier import model_card
from visionshare.errors import InputError

FIGURES = {"test_errors": 7, "test_images": 599, "train_images": 1198, "test_origin": "held out"}


def _classifier(classes=("a", "b"), source="digits"):
    family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    k = len(classes)
    metadata = {"pipeline": "letters", "recipe": {"data": {"source": source}}}
    weights = np.ones((k, 2))
    return CompactClassifier(
        family, weights, np.zeros(k), np.array(classes), metadata=metadata, temperature=2.0
    )


def _header(card):
    assert card.startswith("---\n")
    return yaml.safe_load(card.split("---\n")[1])


def test_what_hubs_read():
    header = _header(model_card(_classifier(), "letters", FIGURES, "bsd-3-clause"))
    assert header["library_name"] == "visionshare"
    assert header["pipeline_tag"] == "image-classification"
    assert header["license"] == "bsd-3-clause"
    (result,) = header["model-index"][0]["results"]
    assert result["dataset"]["name"] == "digits"
    assert result["metrics"] == [
        {"type": "accuracy", "value": pytest.approx(1 - 7 / 599, abs=1e-6)}
    ]


def test_what_people_read():
    card = model_card(_classifier(), "letters", FIGURES)
    assert "1.17 % of the test images are misclassified (7 of 599)." in card
    assert "held out before training" in card
    assert "It was trained on `digits` (1,198 images)." in card
    assert "2×2 pixels, gray" in card
    assert "temperature 2" in card
    for heading in ("What it takes and gives", "How to use it", "Data", "Error", "Limits"):
        assert f"\n## {heading}\n" in card


def test_nothing_is_claimed_that_was_not_measured():
    card = model_card(_classifier(source=None))
    assert "No error was measured." in card
    assert "does not say what it was trained on" in card
    assert not {"model-index", "license"} & set(_header(card))


def test_where_pictures_were_is_not_told():
    card = model_card(_classifier(source="/home/someone/photos/"), figures=FIGURES)
    assert "`photos`" in card
    assert "someone" not in card


def test_names_cannot_write_markup():
    hostile = "x`|\n<script>\n---\nevil: 1"
    card = model_card(_classifier((hostile, "b")), hostile, FIGURES)
    assert "evil" not in _header(card)
    table = [line for line in card.splitlines() if line.startswith("| classes")]
    assert table == ["| classes | `x'\\| <script> --- evil: 1`, `b` |"]
    assert len(_header(card)["model-index"]) == 1


def test_many_classes_are_counted():
    card = model_card(_classifier([f"c{i}" for i in range(50)]))
    assert "`c39` and 10 more" in card


def test_figures_have_to_fit():
    with pytest.raises(InputError, match="8 errors of 5"):
        model_card(_classifier(), figures={"test_errors": 8, "test_images": 5})


def test_save_writes_it_beside(tmp_path):
    path = tmp_path / "mine.safetensors"
    _classifier().save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.safetensors"]
    _classifier().save(path, card=FIGURES)
    card = (tmp_path / "mine.md").read_text(encoding="utf-8")
    assert "# letters" in card
    assert f"load({json.dumps('mine.safetensors')})" in card
    _classifier().save(path, card=True)
    assert "No error was measured." in (tmp_path / "mine.md").read_text(encoding="utf-8")


def test_names_that_no_utf_8_file_holds(tmp_path):
    _classifier(("a\udc80b", "c")).save(tmp_path / "model.safetensors", card=True)
    assert "a\\udc80b" in (tmp_path / "model.md").read_text("utf-8")
