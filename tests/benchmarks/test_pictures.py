"""The benchmark of own pictures: what is done once stays done; peers get what we had."""

import json
import sys

import numpy as np
import pytest

from benchmarks import pictures
from visionshare.datasets import load_images

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OURS = {"error": 0.25, "seconds": 1.0, "macs": 1000, "recipe": None, "chosen": "stub"}


@pytest.fixture
def ours(monkeypatch):
    """Stand in for our classifier; note what it gets."""
    given = []

    def run(train, test, seed, *, pretrained):
        if not pretrained:
            given.append((len(train), len(test), seed))
        return dict(OURS)

    monkeypatch.setattr(pictures, "run_ours", run)
    return given


def _main(tmp_path, *options):
    command = ["--data", str(tmp_path), "--set", "digits", "--json", str(tmp_path / "a.json")]
    pictures.main([*command, "--train", "300", "--test", "100", *options])
    return json.loads((tmp_path / "a.json").read_text())


def test_what_is_there_is_not_done_again(tmp_path, ours, capsys):
    first = _main(tmp_path, "--seeds", "1", "--peers", "gradients")
    (title,) = {about.split(" | ")[0] for about in first}
    n_train, n_test = (int(word) for word in title.split() if word.isdecimal())
    assert ours == [(n_train, n_test, 0)]
    assert 270 <= n_train <= 330
    gradients = first[f"{title} | HOG, Gaussian SVM | 0"]
    # Ten digits: a guess errs nine times in ten.
    assert 0 <= gradients["error"] < 0.3
    again = _main(tmp_path, "--seeds", "2", "--peers", "gradients")
    assert [seed for _, _, seed in ours] == [0, 1]
    assert {about: again[about] for about in first} == first
    # What does not depend on a seed has one run.
    assert len(again) == len(first) + 1


def test_the_page_has_a_row_of_each_set(tmp_path, ours, capsys):
    _main(tmp_path, "--seeds", "1", "--peers", "--page", "--out", str(tmp_path))
    page = (tmp_path / "own-pictures.md").read_text()
    known, unseen = page.split("No default was chosen")
    assert "| digits | 25.00 | – | – | – | – |" in known
    assert "| digits |" not in unseen


def test_a_row_has_the_mean_of_each_classifier():
    runs = {pictures.LENET: (0.3, 0.1), pictures.OURS: (0.2,)}
    results = {
        f"some, 5 images | {who} | {seed}": {**OURS, "error": error}
        for who, errors in runs.items()
        for seed, error in enumerate(errors)
    }
    (row,) = pictures.comparison(results, ["some"])
    assert row[:2] == ["some", "20.00"]
    assert row[3].startswith("20.00 ±")
    assert row[2] == "–"
    assert row[4:] == ["–", "–"]
    assert pictures.comparison(results, ["other"]) == []


def test_peers_deform_as_we_did():
    train = load_images("digits", "train")
    mine = '[data]\nsource = "images"\n\n[deformations]\nrotation = 3.0\n'
    assert pictures._deforming(mine, train) == mine
    small = tomllib.loads(pictures._deforming(None, train))["deformations"]
    assert small["rotation"] > 0
    assert small["copies"] == 0


def test_an_error_is_the_share_of_wrong_labels():
    test = load_images("digits", "test")
    wrong = iter(np.split(np.where(np.arange(len(test)) < 5, -1, test.labels), [1000]))
    assert pictures._error(lambda images: next(wrong)[: len(images)], test) == 5 / len(test)
