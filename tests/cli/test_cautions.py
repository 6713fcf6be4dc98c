"""Warnings of results that say less than they seem to."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from visionshare import Pixels
from visionshare.classifier import CompactClassifier
from visionshare.cli.cautions import warn_near_majority, warn_of_one_trial
from visionshare.cli.main import main
from visionshare.datasets.training_values import TrainingValues
from visionshare.reports.results import is_near_majority


@pytest.mark.parametrize(
    ("errors", "n", "majority_error", "near"),
    [
        (50, 100, 0.5, True), (60, 100, 0.5, True), (45, 100, 0.5, True), (10, 100, 0.5, False),
        # Many images tell a small difference, which is still near.
        (4600, 10_000, 0.5, True), (4000, 10_000, 0.5, False),
        # Ten classes of equal size.
        (85, 100, 0.9, True), (60, 100, 0.9, False),
        # Few images tell nothing, and of one class alone no error is less.
        (5, 16, 0.5, True), (1, 16, 0.5, False), (0, 8, 0.0, False), (1, 8, 0.0, True),
        # A rare class that is never recognized.
        (10, 1000, 0.01, True), (0, 1000, 0.01, False),
    ],
)  # fmt: skip
def test_errors_near_that_of_the_commonest_class(errors, n, majority_error, near, capsys):
    assert is_near_majority(errors, n, majority_error) is near
    warn_near_majority("test", errors, n, "a\x1b[31m", majority_error)
    said = capsys.readouterr()
    assert said.out == ""
    assert ("is not clearly better than always answering 'a" in said.err) is near
    assert "\x1b" not in said.err


@pytest.mark.parametrize(
    ("given", "ways"),
    [
        (["--time"], "a longer --time allows"),
        (["--budget", "--size"], "a larger --budget or a larger --size allows"),
        ([], "a larger --size allows"),
    ],
)
def test_a_search_of_one_trial_is_told(given, ways, capsys):
    allowed, beyond = SimpleNamespace(allowed=True), SimpleNamespace(allowed=False)
    warn_of_one_trial(SimpleNamespace(trials=[allowed, allowed]), given)
    assert capsys.readouterr().err == ""
    for trials in ([allowed], [beyond, allowed, beyond]):
        warn_of_one_trial(SimpleNamespace(trials=trials), given)
        said = capsys.readouterr().err
        assert said.startswith("warning: only one structure was tried")
        assert ways in said


def test_train_and_evaluate_warn_of_noise(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for folder in ("noise/a", "noise/b", "fresh/a", "fresh/b"):
        (tmp_path / folder).mkdir(parents=True)
        for i in range(40):
            # The fresh ones have both classes: half of them err, whatever is answered.
            draws = np.random.default_rng(i) if folder.startswith("fresh") else rng
            picture = Image.fromarray(draws.integers(0, 256, (8, 8), np.uint8))
            picture.save(tmp_path / folder / f"{i}.png")
    quick = ["--recipe", "digits", "--set", 'features.pool="pixels"', "--rounds", "1"]
    quick += ["--set", "features.parameters={}"]
    assert main(["train", "noise", *quick]) == 0
    warning = "test error on 16 images is not clearly better than always answering 'a' (50.00 %)"
    assert warning in capsys.readouterr().err
    assert main(["evaluate", "out/noise", "fresh"]) == 0
    assert "is not clearly better than always answering 'a'" in capsys.readouterr().err
    for name, least in (("a", 0), ("b", 190)):
        for i in range(40):
            picture = Image.fromarray(rng.integers(least, least + 60, (8, 8), np.uint8))
            picture.save(tmp_path / "noise" / name / f"{i}.png")
    assert main(["train", "noise", *quick, "--out", "seen"]) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("top", "trained", "is_warned"),
    [(12.0, (0.0, 16.0), True), (16.0, (0.0, 16.0), False), (12.0, (0.0, 255.0), True),
     (1.0, (0.0, 255.0), False)],
)  # fmt: skip
def test_values_of_another_scale_are_told(tmp_path, capsys, top, trained, is_warned):
    images = np.linspace(0, top, 6 * 16).reshape(6, 4, 4)
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(6) % 2)
    family = Pixels().fit(images).take([0])
    kind = "bytes" if trained == (0.0, 255.0) else "other"
    values = TrainingValues(*trained, kind)
    weights = np.array([[1.0], [-1.0]])
    classes = np.array(["0", "1"])
    CompactClassifier(family, weights, np.zeros(2), classes, values=values).save(tmp_path / "c")
    assert main(["evaluate", str(tmp_path / "c"), str(tmp_path / "a.npz")]) == 0
    assert ("bring them to the same scale" in capsys.readouterr().err) == is_warned
