"""The refit: what is written learned from all pictures, and the test figure is that of before."""

import json

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare.datasets import load_images
from visionshare.errors import BudgetError, InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures

QUICK = ["learner.rounds=3", "features.parameters.n_templates=10"]
TUNED = [
    "features.parameters.n_templates=10", "learner.rounds=4",
    "fine_tuning={epochs=2, batch=16, head='linear'}",
]  # fmt: skip


def write_digits(folder, n=60, part="", start=0):
    digits = load_images("digits", "train")
    for name in "01":
        (folder / part / name).mkdir(parents=True)
        for i in np.flatnonzero(digits.labels == int(name))[start : start + n]:
            Image.fromarray(digits.images[i]).save(folder / part / name / f"{i}.png")


def quick(folder, out, settings=QUICK, **options):
    own = recipe_for_pictures(str(folder), PictureOptions(recipe="digits", **options), settings)
    return train(own.recipe, out), own


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refit") / "digits"
    write_digits(folder)
    return folder


@pytest.mark.whole_report
def test_the_figure_is_that_of_the_run_before_and_says_so(folder, tmp_path):
    plain, _ = quick(folder, tmp_path / "plain", refit=False)
    result, own = quick(folder, tmp_path / "out")
    assert own.recipe.refit
    assert "refit_images" not in plain.metrics
    figures = result.metrics
    assert (figures["train_images"], figures["test_images"]) == (96, 24)
    assert figures["refit_images"] == 120
    assert figures["test_errors"] == plain.metrics["test_errors"]
    assert figures["macs"] == plain.metrics["macs"]
    assert figures["seconds"]["refit"] > 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "trained again, with the same settings, on all 120 images" in page
    assert "trained again" not in (tmp_path / "plain" / "report.html").read_text("utf-8")
    card = (tmp_path / "out" / "classifier.md").read_text("utf-8")
    assert "(120 images)" in card
    assert "trained again on all 120" in card
    # The learning path is that of the run before: it has test errors.
    path = [(tmp_path / name / "path.csv").read_text().splitlines() for name in ("out", "plain")]
    names = path[0][0].split(",")
    assert [row.split(",")[names.index("test_error")] for row in path[0]] == [
        row.split(",")[names.index("test_error")] for row in path[1]
    ]


def test_pictures_of_a_refit_are_counted_without_their_copies(folder, tmp_path):
    result, _ = quick(folder, tmp_path / "out", [*QUICK, "deformations.copies=2"])
    assert result.metrics["train_images"] == 3 * 96
    assert result.metrics["refit_images"] == 120


def test_what_is_written_learned_from_the_test_pictures_too(folder, tmp_path):
    result, own = quick(folder, tmp_path / "out")
    written = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    plain, _ = quick(folder, tmp_path / "plain", refit=False)
    assert not np.array_equal(written.weights, plain.classifier.weights)
    before, after = (m.classifier.metadata["training_data"] for m in (plain, result))
    assert before != after
    # The features are those that were chosen, so that the cost is the same.
    assert (written.macs, written.nbytes) == (plain.classifier.macs, plain.classifier.nbytes)
    images = load_images("digits", "test").of_classes(["0", "1"])
    same = visionshare.recipes.train(own.recipe, tmp_path / "again").classifier
    np.testing.assert_array_equal(
        same.decision_function(images.images), result.classifier.decision_function(images.images)
    )


def test_features_that_move_are_learned_again(folder, tmp_path):
    result, _ = quick(folder, tmp_path / "out", TUNED)
    plain, _ = quick(folder, tmp_path / "plain", TUNED, refit=False)
    assert result.classifier.n_features == plain.classifier.n_features
    assert result.metrics["test_errors"] == plain.metrics["test_errors"]
    assert not np.array_equal(result.classifier.weights, plain.classifier.weights)


def test_given_test_pictures_train_where_that_is_asked_for(tmp_path):
    write_digits(tmp_path / "d", 30, "train")
    write_digits(tmp_path / "d", 10, "test", start=30)
    result, own = quick(tmp_path / "d", tmp_path / "out")
    assert not own.recipe.refit
    result, _ = quick(tmp_path / "d", tmp_path / "out", refit=True)
    assert (result.metrics["test_origin"], result.metrics["refit_images"]) == ("given", 80)


def test_what_does_not_fit_is_not_written(folder, tmp_path, monkeypatch):
    def too_large(*_):
        raise BudgetError("flash is 900, more than 800")

    monkeypatch.setattr("visionshare.recipes.training._refitted", too_large)
    result, _ = quick(folder, tmp_path / "out")
    assert "refit_images" not in result.metrics
    assert result.metrics["notes"][-1].endswith("on all pictures: flash is 900, more than 800")
    assert json.loads((tmp_path / "out" / "metrics.json").read_text()) == result.metrics


def test_combinations_that_say_nothing_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match=r"--refit: got '--test-fraction 0'"):
        quick(folder, tmp_path / "out", refit=True, test_fraction=0)
    assert not quick(folder, tmp_path / "none", test_fraction=0)[1].recipe.refit
    tuned = [*TUNED, "teacher.source='pretrained'"]
    options = PictureOptions(recipe="digits")
    assert not recipe_for_pictures(str(folder), options, tuned).recipe.refit
    with pytest.raises(InputError, match="--refit: got '--teacher pretrained'"):
        recipe_for_pictures(str(folder), PictureOptions(recipe="digits", refit=True), tuned)
    with pytest.raises(InputError, match="--refit: got 's3://"):
        recipe_for_pictures("s3://bucket/train-*.tar", PictureOptions(refit=True))
    recipe = load_recipe("digits", ["refit=true"], {"data": {"source": "s3://bucket/*.tar"}})
    with pytest.raises(RecipeError, match="refit: not with pictures in storage"):
        train(recipe, tmp_path / "out")
