"""ImageClassifier, as scikit-learn and people use it."""

import pickle

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import visionshare
from visionshare import ImageClassifier, PatchTemplates, Pixels
from visionshare.datasets import Augmentation
from visionshare.errors import InputError
from visionshare.export import compile_classifier
from visionshare.recipes import load_recipe
from visionshare.recipes.reading import parse_recipe

POOL = PatchTemplates(3, 10, grid=2, widths=(2.0,), n_patches=500)
QUICK = {"features": POOL, "budget": 3000, "n_jobs": 1}


def test_it_learns_and_keeps_the_budget(fitted, bars):
    images, y = bars(100, seed=1)
    assert fitted.score(images, y) > 0.9
    assert fitted.cost_["macs"] <= fitted.budget
    assert fitted.classes_.tolist() == ["lying", "standing"]
    assert fitted.image_shape_ == (9, 9)
    probabilities = fitted.predict_proba(images)
    assert probabilities.shape == (100, 2)
    assert np.allclose(probabilities.sum(axis=1), 1)
    scores = fitted.decision_function(images)
    assert np.array_equal(fitted.classes_[(scores > 0).astype(int)], fitted.predict(images))


def test_what_was_tried_is_kept(fitted):
    results = fitted.search_results_
    assert len({len(column) for column in results.values()}) == 1
    assert len(results["proposal"]) >= 5
    # What was chosen stands first; another may have been better by less than a margin.
    assert results["doubt"][1:] == sorted(results["doubt"][1:])
    assert 0 <= fitted.validation_error_ <= 1
    assert any("mirrors" in name for name in results["proposal"])


def test_the_same_seed_gives_the_same_classifier_for_any_number_of_threads(fitted, pictures, bars):
    other = clone(fitted).set_params(n_jobs=2).fit(*pictures)
    images, _ = bars(20, seed=2)
    assert np.array_equal(fitted.decision_function(images), other.decision_function(images))
    assert fitted.search_results_["doubt"] == other.search_results_["doubt"]
    assert fitted.recipe_ == other.recipe_


def test_a_saved_classifier_says_the_same(fitted, bars, tmp_path):
    images, _ = bars(20, seed=2)
    fitted.save(tmp_path / "bars.safetensors")
    loaded = visionshare.load(tmp_path / "bars.safetensors")
    assert loaded.predict(images).tolist() == fitted.predict(images).tolist()
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(images), fitted.predict_proba(images))


def test_exports(fitted, tmp_path):
    names = {path.name for path in fitted.export(tmp_path / "c")}
    assert {"classifier.c", "classifier.h"} <= names
    assert [path.suffix for path in fitted.export(tmp_path, "onnx")] == [".onnx"]
    assert compile_classifier(fitted.classifier_) is not None
    with pytest.raises(InputError, match="format"):
        fitted.export(tmp_path, "java")


def test_exports_in_integers(fitted, bars, tmp_path):
    images, y = bars(60)
    greedy = ImageClassifier(**QUICK).fit(images, y)
    for model, folder in ((fitted, tmp_path / "layers"), (greedy, tmp_path / "greedy")):
        model.export(folder, calibrate=images)
        assert "typedef int32_t classifier_score" in (folder / "classifier.h").read_text()
    pixels = ImageClassifier(features=Pixels(), budget=3000).fit(images, y)
    with pytest.raises(InputError, match=r"calibrate: .*they have no integers in c"):
        pixels.export(tmp_path / "p", calibrate=images)
    assert not (tmp_path / "p").exists()


def test_the_choice_is_a_recipe(fitted, tmp_path):
    path = fitted.to_recipe(tmp_path / "bars.toml", tmp_path / "photos")
    recipe = load_recipe(path)
    assert recipe.data.source == str(tmp_path / "photos")
    assert (recipe.data.height, recipe.data.width) == (9, 9)
    features = parse_recipe(fitted.recipe_).features
    assert recipe.features == features


def test_what_is_shown(fitted):
    assert repr(ImageClassifier(budget=5)) == "ImageClassifier(budget=5)"
    assert "multiply-accumulates" in repr(fitted)


def test_scikit_learns_tools(pictures):
    images, y = pictures
    model = ImageClassifier(**QUICK)
    assert cross_val_score(model, images, y, cv=2).mean() > 0.7
    search = GridSearchCV(model, {"budget": [500, 3000]}, cv=2).fit(images, y)
    assert search.best_params_["budget"] in (500, 3000)
    inverted = make_pipeline(FunctionTransformer(np.invert), model).fit(images, y)
    assert inverted.score(images, y) > 0.8


def test_lists_of_arrays_and_of_paths(pictures, tmp_path):
    images, y = pictures
    cropped = [image[i % 2 :, i % 3 :] for i, image in enumerate(images)]
    assert ImageClassifier(**QUICK).fit(cropped, y).score(cropped, y) > 0.8
    paths = []
    for i, image in enumerate(images):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(image).save(paths[-1])
    models = [ImageClassifier(**QUICK, size=9).fit(some, y) for some in (paths, images)]
    of_paths, of_arrays = models
    assert np.array_equal(of_paths.predict_proba(paths), of_arrays.predict_proba(images))


@pytest.mark.parametrize("features", [POOL, "small-patches"])
def test_classes_have_weights(features):
    rng = np.random.default_rng(0)
    y = np.array(["dark", "bright"])[rng.integers(0, 2, 120)]
    images = rng.integers(0, 200, (120, 9, 9)) + 30 * (y == "bright")[:, None, None]
    images = images.astype(np.uint8)
    model = ImageClassifier(features, budget=3000, augment=False, n_jobs=1, random_state=0)
    share = []
    for name in ("bright", "dark"):
        model.set_params(class_weight={name: 50.0}).fit(images, y)
        share.append(model.predict_proba(images)[:, model.classes_ == "bright"].mean())
    assert share[0] > share[1] + 0.01
    with pytest.raises(InputError, match="class_weight"):
        model.set_params(class_weight={"unknown": 2.0}).fit(images, y)


def test_a_family_is_searched_alone(pictures, tmp_path):
    images, y = pictures
    model = ImageClassifier(POOL, n_jobs=1, class_weight="balanced").fit(images, y)
    assert model.score(images, y) > 0.8
    assert not hasattr(POOL, "n_features_")
    assert model.recipe_ is None
    with pytest.raises(InputError, match="features"):
        model.to_recipe(tmp_path / "recipe.toml", "photos")


@pytest.mark.parametrize("budget", [400, 3000])
def test_a_greedy_choice_from_all_images_keeps_the_budget_too(pictures, budget):
    model = ImageClassifier("small-patches", budget=budget, n_jobs=1).fit(*pictures)
    assert model.cost_["macs"] <= budget


def test_classes_of_any_kind(pictures):
    images, y = pictures
    stands = y == "standing"
    for labels in (stands, stands.astype(float), np.where(stands, 7, -3), stands.tolist()):
        model = ImageClassifier(**QUICK).fit(images, labels)
        assert set(model.predict(images).tolist()) <= set(np.asarray(labels).tolist())


def test_a_time_is_kept_roughly_and_still_gives_a_classifier(pictures):
    model = ImageClassifier(time=0.01, budget=9000, n_jobs=1).fit(*pictures)
    assert len(model.search_results_["proposal"]) == 1
    assert model.predict(pictures[0]).shape == (60,)


def test_given_augmentation_and_none(pictures):
    for augment, words in ((False, "no copies"), (Augmentation(alpha=0.5), "given copies")):
        model = ImageClassifier(time=0.01, budget=9000, augment=augment, n_jobs=1).fit(*pictures)
        assert words in model.search_results_["proposal"][0]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"features": 7}, "features"),
        ({"features": "no-such-pool"}, "no-such-pool"),
        ({"budget": -1}, "budget"),
        ({"time": 0}, "time"),
        ({"size": "large"}, "size"),
        ({"color": 3}, "color"),
        ({"augment": "some"}, "augment"),
        ({"class_weight": "rare"}, "class_weight"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_parameters_are_checked_in_fit_and_not_before(options, argument, pictures):
    model = ImageClassifier(**options)
    with pytest.raises(ValueError, match=argument):
        model.fit(*pictures)


def test_data_that_does_not_fit(pictures, fitted):
    images, y = pictures
    with pytest.raises(InputError, match="one target for each"):
        ImageClassifier(**QUICK).fit(images, y[:-1])
    with pytest.raises(InputError, match="y: got None"):
        ImageClassifier(**QUICK).fit(images, None)
    with pytest.raises(ValueError, match="y: got nan"):
        ImageClassifier(**QUICK).fit(images, np.where(y == "lying", np.nan, 1.0))
    with pytest.raises(InputError, match="two classes"):
        ImageClassifier(**QUICK).fit(images, np.zeros(60, int))
    with pytest.raises(InputError, match="reshape"):
        fitted.predict(np.zeros((3, 81)))
    said = "budget: got '0 multiply-acc.*the cheapest that was tried costs [1-9]"
    with pytest.raises(InputError, match=said):
        ImageClassifier(features=POOL, budget=0.5, n_jobs=1).fit(images, y)


def test_a_budget_of_the_cost_that_an_error_names_is_kept(pictures):
    images, y = pictures
    with pytest.raises(InputError, match="budget") as refused:
        ImageClassifier(features=POOL, budget={"bytes": 10}, n_jobs=1).fit(images, y)
    least = int(str(refused.value).rsplit(" and ", 1)[1].split()[0].replace(",", ""))
    model = ImageClassifier(features=POOL, budget={"bytes": 2 * least}, n_jobs=1).fit(images, y)
    assert 0 < model.cost_["bytes"] <= 2 * least
