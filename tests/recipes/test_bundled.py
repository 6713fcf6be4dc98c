"""Every bundled recipe without a download, and with it every learner, from images to exports."""

from __future__ import annotations

import numpy as np
import pytest

import visionshare
from visionshare.datasets import load_images
from visionshare.export import c_program, onnx_program
from visionshare.learners.registry import CLASSIFIERS
from visionshare.recipes import list_pipelines, load_recipe, train

# Fewer images and rounds: a second each.
FEW = {
    "digits": ["learner.rounds=4"],
    "digits-early": ["learner.rounds=6", "early_exit.stages=2", "data.limit=600"],
    "digits-forward-greedy": ["learner.rounds=10"],
    "digits-grfl": ["learner.rounds=4"],
    "digits-jointboost": ["learner.rounds=6"],
    "digits-mixed-norm": ["learner.alpha=4", "learner.calibrate=false"],
    "digits-one-against-rest": ["learner.rounds=2"],
    "digits-structural": ["learner.rounds=4", "learner.calibrate=false"],
    "textures": ["learner.rounds=8", "data.cut.per_class=100", "fine_tuning.epochs=20"],
    "textures-gabor": ["learner.rounds=4", "data.cut.per_class=60", "draws.n=10"],
}


def small_recipe(name):
    recipe = load_recipe(name)
    settings = list(FEW[name])
    if recipe.data.source == "digits" and recipe.data.limit is None:
        if not any(setting.startswith("data.limit") for setting in settings):
            settings.append("data.limit=250")
        if recipe.features.pool == "small-patches":
            settings.append("features.parameters.n_templates=20")
    return load_recipe(name, settings)


def test_every_recipe_that_needs_no_download_is_here():
    sources = {name: load_recipe(name).data.source for name in list_pipelines()}
    assert set(FEW) == {
        name for name, source in sources.items() if source in ("digits", "textures")
    }


def test_every_learner_has_a_bundled_recipe():
    # The command transfer learns by GreedyTL, a search of images by DenseClassifier.
    kinds = {load_recipe(name).learner.kind for name in FEW}
    assert kinds == set(CLASSIFIERS) - {"dense", "greedytl"}


@pytest.mark.parametrize("name", FEW)
def test_a_recipe_trains_saves_loads_predicts_and_exports(name, tmp_path):
    recipe = small_recipe(name)
    result = train(recipe, tmp_path / "out")
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert result.metrics["features"] == model.n_features > 0
    # Guessing is wrong more often.
    assert result.metrics["test_error_rate"] < 1 - 1.5 / len(model.classes_)
    assert model.preprocessing == result.classifier.preprocessing
    assert (model.preprocessing.polarity == "automatic") == (recipe.preprocessing is not None)
    assert model.metadata["recipe"]["learner"]["kind"] == recipe.learner.kind
    images = load_images(
        recipe.data.source, "test", cut=recipe.data.cut and recipe.data.cut.build()
    )
    predicted = model.predict(images.images[:50])
    np.testing.assert_array_equal(predicted, result.classifier.predict(images.images[:50]))
    assert set(predicted) <= set(model.classes_)
    files = c_program(model).files
    assert any(text for text in files.values())
    assert len(onnx_program(model).content) > 100
