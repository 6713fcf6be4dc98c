"""Early exit in recipes and commands: validation images do not train; figures are reported."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from visionshare.classifier import load
from visionshare.cli.application import app
from visionshare.errors import RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.stages.images import RunImages, validation_mask

SMALL = [
    "learner.rounds=12", "learner.n_backward=0", "features.parameters.n_templates=60",
    "early_exit.stages=2", "early_exit.tolerance=0.03",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the result of a small run with early exit."""
    return train(load_recipe("digits-early", SMALL), tmp_path_factory.mktemp("run") / "out")


def test_the_rule_is_in_the_file_and_in_the_figures(run) -> None:
    model = load(run.out / "classifier.safetensors")
    assert model.exit_rule is not None
    assert 1 <= len(model.exit_rule.rounds) <= 2
    figures = json.loads((run.out / "metrics.json").read_text())["early_exit"]
    assert figures["average_macs"] < model.macs
    assert sum(figures["stage_fractions"]) == pytest.approx(1)
    assert model.path[-1].validation_error is not None


def test_the_validation_mask_is_stratified_and_takes_the_copies_along() -> None:
    from visionshare.datasets import ImageSet

    labels = np.repeat([0, 1], [40, 60])
    images = np.arange(1200, dtype=np.uint16).view(np.uint8).reshape(300, 2, 4)
    training = ImageSet(images, np.tile(labels, 3), ("a", "b"), "x")
    recipe = load_recipe("digits-early", ["deformations.copies=2", "early_exit.fraction=0.1"])
    mask = validation_mask(recipe, RunImages(training, training, 100))
    assert np.bincount(labels[mask[:100]]).tolist() == [4, 6]
    np.testing.assert_array_equal(mask[:100], mask[100:200])
    np.testing.assert_array_equal(mask[:100], mask[200:])


def test_the_command_measures_early_exit(run) -> None:
    said = CliRunner().invoke(app, ["evaluate", str(run.out / "classifier.safetensors"), "digits"])
    assert said.exit_code == 0, said.output
    assert "with early exit: on average" in said.output
    arguments = ["evaluate", str(run.out / "classifier.safetensors"), "digits", "--json"]
    figures = json.loads(CliRunner().invoke(app, arguments).output)
    assert figures["early_exit"]["max_macs"] >= figures["early_exit"]["average_macs"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("early_exit.tolerance=1.5", "early_exit.tolerance: got 1.5"),
        ("early_exit.stages=0", "early_exit.stages: got 0"),
        ("early_exit.fraction=0.0", "early_exit.fraction: "),
        ("early_exit.share=0.1", "unknown key 'early_exit.share'"),
        ("learner={kind='grfl'}", 'early_exit: needs learner.kind = "shareboost"'),
    ],
)
def test_wrong_settings(setting: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe("digits-early", [setting])
