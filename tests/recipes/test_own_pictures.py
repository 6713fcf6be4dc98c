"""Recipes for one's own pictures: chosen, changed by options, and trained to honest figures."""

import json

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare.datasets import load_images
from visionshare.errors import DataError, InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.own_pictures import PictureOptions, names_pictures, recipe_for_pictures

QUICK = ["learner.rounds=3", "features.parameters.n_templates=10"]


def write_digits(folder, n=60, part="", classes="01", start=0):
    digits = load_images("digits", "train")
    for name in classes:
        home = folder / part / name
        home.mkdir(parents=True, exist_ok=True)
        members = np.flatnonzero(digits.labels == int(name))[start : start + n]
        for i in members:
            Image.fromarray(digits.images[i]).save(home / f"{i}.png")


def quick(folder, out, settings=(), **options):
    made = PictureOptions(recipe="digits", **options)
    own = recipe_for_pictures(str(folder), made, [*QUICK, *settings])
    return train(own.recipe, out), own


@pytest.mark.whole_report
def test_a_folder_without_parts_keeps_a_part_aside(tmp_path):
    write_digits(tmp_path / "my digits")
    _result, own = quick(tmp_path / "my digits", tmp_path / "out")
    figures = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert own.recipe.name == "my-digits"
    assert (figures["train_images"], figures["test_images"]) == (96, 24)
    assert figures["test_origin"] == "held out"
    assert figures["test_error_rate"] == figures["test_errors"] / 24 < 0.3
    assert "holding out 24 of 120 images" in figures["notes"][0]
    assert "before training, did not train" in (tmp_path / "out" / "report.html").read_text()
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert set(model.classes_) == {"0", "1"}


@pytest.mark.whole_report
def test_given_test_pictures_test_and_leaks_are_told(tmp_path):
    write_digits(tmp_path / "d", 30, "train")
    write_digits(tmp_path / "d", 10, "test", start=29)
    result, _ = quick(tmp_path / "d", tmp_path / "out")
    figures = result.metrics
    assert (figures["train_images"], figures["test_images"]) == (60, 20)
    assert figures["test_origin"] == "given"
    assert "2 of 20 test pictures are training pictures too" in figures["notes"][0]
    assert "own test split" in (tmp_path / "out" / "report.html").read_text()
    with pytest.raises(InputError, match="test-fraction"):
        quick(tmp_path / "d", tmp_path / "other", test_fraction=0.3)


@pytest.mark.whole_report
def test_without_a_test_picture_there_is_no_test_figure(tmp_path):
    write_digits(tmp_path / "d")
    result, _ = quick(tmp_path / "d", tmp_path / "out", test_fraction=0.0)
    figures = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (figures["train_images"], figures["test_images"]) == (120, 0)
    assert (figures["test_errors"], figures["test_error_rate"]) == (None, None)
    assert figures["test_origin"] == "none"
    report = (tmp_path / "out" / "report.html").read_text()
    assert "% test error" not in report
    assert "No test figure" in report
    assert all(step.test_error is None for step in result.classifier.path)


def test_the_bundled_data_sets_say_that_their_test_images_were_given(tmp_path):
    recipe = load_recipe("digits", [*QUICK, "data.limit=100"])
    assert train(recipe, tmp_path).metrics["test_origin"] == "given"


def test_options_become_settings_of_the_recipe(tmp_path):
    write_digits(tmp_path)
    own = recipe_for_pictures(
        str(tmp_path), PictureOptions(size=(20, 24), color=True, balanced=True, skip_broken=True)
    )
    recipe = own.recipe
    assert (recipe.data.height, recipe.data.width, recipe.data.mode) == (20, 24, "color")
    assert recipe.data.skip_broken
    assert recipe.learner.class_weight == recipe.fine_tuning.class_weight == "balanced"
    assert any("as asked for" in reason for reason in own.reasons)
    plain = recipe_for_pictures(str(tmp_path)).recipe
    assert (plain.data.height, plain.data.width, plain.data.mode) == (16, 16, "gray")
    # What a gray picture shows may be a letter: its mirror image is another one.
    assert plain.deformations.flip == 0
    assert plain.fine_tuning.class_weight is None


def test_pictures_of_one_size_need_none_though_steps_crop(tmp_path):
    write_digits(tmp_path / "d")
    recipe = load_recipe("digits", [*QUICK], {"data": {"source": str(tmp_path / "d")}})
    assert recipe.preprocessing.crop
    result = train(recipe, tmp_path / "out")
    assert result.classifier.image_shape == (8, 8)
    Image.new("L", (9, 9)).save(tmp_path / "d" / "0" / "other.png")
    with pytest.raises(DataError, match="give a size, such as their median 8×8"):
        train(recipe, tmp_path / "other")


def test_broken_pictures_are_named_with_a_way_out(tmp_path):
    write_digits(tmp_path / "d")
    (tmp_path / "d" / "0" / "broken.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"1 of 121 pictures.*broken\.png.*--skip-broken"):
        quick(tmp_path / "d", tmp_path / "out")
    result, _ = quick(tmp_path / "d", tmp_path / "out", skip_broken=True)
    assert any("1 broken picture is left out" in note for note in result.metrics["notes"])


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_other_sources_train_too(tmp_path, kind):
    write_digits(tmp_path / "d")
    files = sorted((tmp_path / "d").rglob("*.png"))
    source = tmp_path / "d" / f"mine.{kind}"
    if kind == "csv":
        rows = [f"{path.relative_to(tmp_path / 'd')},{path.parent.name}" for path in files]
        source.write_text("\n".join(["path,label", *rows]))
    else:
        images = np.stack([np.asarray(Image.open(path)) for path in files])
        labels = [int(path.parent.name) for path in files]
        if kind == "npz":
            np.savez(source, images=images, labels=labels)
        else:
            pyarrow = pytest.importorskip("pyarrow")
            parquet = pytest.importorskip("pyarrow.parquet")
            rows = [{"bytes": path.read_bytes()} for path in files]
            table = pyarrow.table({"image": rows, "label": labels})
            names = json.dumps({"info": {"features": {"label": {"names": ["0", "1"]}}}})
            parquet.write_table(table.replace_schema_metadata({"huggingface": names}), source)
    result, _ = quick(source, tmp_path / "out")
    assert (result.metrics["train_images"], result.metrics["test_images"]) == (96, 24)
    assert result.metrics["test_error_rate"] < 0.3


def test_vectors_train_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(tmp_path / "a.npz", X=rng.random((60, 5)) + y[:, None], y=y)
    options = PictureOptions(recipe="digits")
    own = recipe_for_pictures(
        str(tmp_path / "a.npz"), options, ["features={pool='pixels'}", "learner.rounds=3"]
    )
    assert train(own.recipe, tmp_path / "out").metrics["test_error_rate"] < 0.3


def test_what_names_pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "photos")
    write_digits(tmp_path / "digits")
    (tmp_path / "a.toml").touch()
    assert names_pictures("photos")
    assert names_pictures("digits/")
    assert names_pictures("./digits")
    assert not any(map(names_pictures, ("digits", "a.toml", "mnist", "none", "glyphs")))


def test_unequal_classes_are_told_unless_they_are_balanced(tmp_path):
    write_digits(tmp_path / "d", 60, classes="0")
    write_digits(tmp_path / "d", 8, classes="1")
    for balanced in (False, True):
        result, _ = quick(tmp_path / "d", tmp_path / "out", balanced=balanced)
        told = any("--balanced" in note for note in result.metrics["notes"])
        assert told != balanced


def test_a_folder_may_have_the_name_of_a_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "mnist", 20)
    result, _ = quick("mnist", tmp_path / "out")
    assert result.metrics["train_images"] == 32


def test_what_cannot_be_trained_on_is_named(tmp_path):
    write_digits(tmp_path / "d", classes="1")
    with pytest.raises(DataError, match=r"one class \(1\)"):
        recipe_for_pictures(str(tmp_path / "d"))
    with pytest.raises(RecipeError, match="no recipe file or pipeline named 'nonsense'"):
        recipe_for_pictures(str(tmp_path / "d"), PictureOptions(recipe="nonsense"))
    with pytest.raises(RecipeError, match="visionshare train FOLDER --recipe photos"):
        train(load_recipe("photos"), tmp_path / "out")
    with pytest.raises(RecipeError, match=r"data\.test_fraction: 'digits' has training"):
        train(load_recipe("digits", ["data.test_fraction=0.5"]), tmp_path / "out")


@pytest.mark.parametrize("name", ["photos", "glyphs"])
def test_the_bundled_recipes_train(name, tmp_path):
    write_digits(tmp_path / "d", 20)
    settings = ["learner.rounds=3", "fine_tuning.epochs=2"]
    settings.append("features.parameters.templates-3={n_templates=10, grid=2}")
    own = recipe_for_pictures(str(tmp_path / "d"), PictureOptions(recipe=name), settings)
    result = train(own.recipe, tmp_path / "out")
    assert result.metrics["test_images"] == 8
    assert result.classifier.image_shape == (16, 16)


def test_the_classifier_takes_the_pictures_of_its_training_in_any_form(tmp_path):
    write_digits(tmp_path / "d", 30)
    # Ink on light paper is inverted before it is learned from.
    for path in (tmp_path / "d").rglob("*.png"):
        Image.fromarray(255 - np.asarray(Image.open(path))).save(path)
    quick(tmp_path / "d", tmp_path / "out")
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    paths = sorted((tmp_path / "d").rglob("*.png"))
    arrays = np.stack([np.asarray(Image.open(path)) for path in paths])
    names = [path.parent.name for path in paths]
    assert model.score(paths, names) > 0.9
    expected = model.predict_proba(paths)
    large = [array.repeat(3, 0).repeat(3, 1) for array in arrays]
    pillow = [Image.open(path) for path in paths]
    for form in (arrays, list(arrays), large, pillow, arrays.astype(float), arrays[..., None]):
        np.testing.assert_array_equal(model.predict_proba(form), expected)
    with pytest.raises(InputError, match="from 0 to 255, as in training"):
        model.predict(arrays / 255)
    with pytest.raises(InputError, match="channels last"):
        model.predict(arrays[:, None])


def test_the_classifier_takes_the_arrays_of_the_file_that_it_learned_from(tmp_path):
    digits = load_images("digits", "train").of_classes("01")
    images = digits.images / 255 * 16
    np.savez(tmp_path / "d.npz", images=images, labels=digits.labels)
    result, _ = quick(tmp_path / "d.npz", tmp_path / "out")
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert model.score(images, digits.labels.astype(str)) > 0.9
    np.testing.assert_array_equal(model.predict_proba(list(images)), model.predict_proba(images))
    np.testing.assert_array_equal(
        result.classifier.predict_proba(images), model.predict_proba(images)
    )
    with pytest.warns(UserWarning, match="from 0 to 16"):
        model.predict(images / 16)
