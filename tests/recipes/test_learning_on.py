"""Learning on: structure and features stay, new pictures and classes join, tests stay honest."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import visionshare
from visionshare.answers import ValueRule
from visionshare.classifier import averaged
from visionshare.cli.main import main
from visionshare.datasets import load_images
from visionshare.errors import ClassifierFileError, InputError, RecipeError
from visionshare.recipes import load_recipe, train
from visionshare.recipes.own_pictures import PictureOptions, recipe_for_pictures, recipe_from
from visionshare.recipes.stages.learning_on import members_of, with_classes

LAYERS = (
    "features={pool='network', parameters={layers=[{kind='templates', n_templates=6, size=3, "
    "grid=2, n_patches=200}]}}"
)
NETWORK = [
    LAYERS,
    "learner.rounds=4",
    "fine_tuning={epochs=8, batch=16, head='hidden', n_units=8, rate=0.02}",
]
GREEDY = ["learner.rounds=3", "features.parameters.n_templates=10"]
DIGITS = load_images("digits", "train")


def write_digits(folder, names, first, last):
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in np.flatnonzero(DIGITS.labels == int(name))[first:last]:
            Image.fromarray(DIGITS.images[i]).save(folder / name / f"{i}.png")


@pytest.fixture(scope="module", params=[NETWORK, GREEDY], ids=["network", "greedy"])
def before(tmp_path_factory, request):
    """Return a folder of pictures of two classes, and that of their training."""
    place = tmp_path_factory.mktemp("on")
    write_digits(place / "d", "01", 0, 40)
    own = recipe_for_pictures(str(place / "d"), PictureOptions(recipe="digits"), request.param)
    train(own.recipe, place / "out")
    return place


def on(place, start):
    own = recipe_from(str(place / "d"), str(start / "out"), PictureOptions())
    return train(own.recipe, place / "on"), own


def split_of(folder):
    found = json.loads((folder / "split.json").read_text())
    return set(found["train"]), set(found["test"])


def test_new_pictures_and_a_new_class_join_and_the_test_stays_honest(before):
    write_digits(before / "d", "01", 40, 50)
    write_digits(before / "d", "2", 0, 40)
    result, own = on(before, before)
    old = visionshare.load(before / "out" / "classifier.safetensors")
    new = visionshare.load(before / "on" / "classifier.safetensors")
    assert new.classes.tolist() == ["0", "1", "2"]
    assert (new.n_features, type(new.family)) == (old.n_features, type(old.family))
    assert "new classes: '2'" in own.reasons
    # What trained before never tests, and what tested still does.
    (trained, tested), (trains, tests) = split_of(before / "out"), split_of(before / "on")
    assert tested < tests
    assert trained < trains
    assert not trains & tests
    assert (len(trained), len(tested)) == (64, 16)
    assert len(tests) == 16 + 4 + 8
    figures = result.metrics
    assert (figures["test_images"], figures["refit_images"]) == (28, 140)
    assert "60 of 140 pictures are new; 16 that were held out before test" in figures["notes"][0]
    # It learned the new class, and forgot nothing.
    images = load_images("digits", "test").of_classes(["0", "1", "2"])
    wrong = new.predict(images.images) != np.asarray(images.classes)[images.labels]
    rates = [wrong[images.labels == label].mean() for label in range(3)]
    assert max(rates) < 0.35
    # And goes on from there.
    again = recipe_from(str(before / "d"), str(before / "on"), PictureOptions()).recipe
    assert again.fine_tuning == own.recipe.fine_tuning
    assert (before / "on" / "measured.safetensors").is_file()


def test_a_class_without_pictures_is_left_out(before, tmp_path):
    write_digits(tmp_path / "d", "012", 0, 30)
    for path in (tmp_path / "d" / "0").iterdir():
        path.unlink()
    _result, own = on(tmp_path, before)
    assert "classes without pictures, which are left out: '0'" in own.reasons
    new = visionshare.load(tmp_path / "on" / "classifier.safetensors")
    assert new.classes.tolist() == ["1", "2"]


def test_without_knowledge_of_what_trained_there_is_no_test_error(before, tmp_path):
    file = before / "out" / "classifier.safetensors"
    own = recipe_from(str(before / "d"), str(file), PictureOptions())
    result = train(own.recipe, tmp_path / "on")
    assert result.metrics["test_error_rate"] is None
    assert "not known which pictures the classifier learned from" in result.metrics["notes"][0]


def test_the_command_says_what_is_new_and_refuses_what_is_kept(before, tmp_path, capsys):
    source, start = str(before / "d"), str(before / "out")
    assert main(["train", source, "--from", start, "--out", str(tmp_path / "on")]) == 0
    said = capsys.readouterr().out
    for text in (f"learning on from {start}", "refit        trained again", "test error"):
        assert text in said
    for options, named in (
        (["--time", "5m", "--size", "9"], "beside --size, --time"),
        (["--recipe", "glyphs"], "beside --recipe"),
        (["--set", "learner.rounds=3"], "beside learner.rounds=3"),
    ):
        assert main(["train", source, "--from", start, *options]) == 2
        assert named in capsys.readouterr().err
    assert main(["train", "digits", "--from", start]) == 2
    assert "--from: not used" in capsys.readouterr().err


def test_what_cannot_learn_on_is_refused(before, tmp_path):
    source = str(before / "d")
    with pytest.raises(ClassifierFileError):
        recipe_from(source, str(tmp_path / "none"), PictureOptions())
    old = visionshare.load(before / "out" / "classifier.safetensors")
    visionshare.classifier.CompactClassifier(
        old.family, old.weights, old.intercept, old.classes
    ).save(tmp_path / "bare.safetensors")
    with pytest.raises(InputError, match=r"--from: got .*; accepted: a classifier that"):
        recipe_from(source, str(tmp_path / "bare.safetensors"), PictureOptions())
    own = recipe_from(source, str(before / "out"), PictureOptions())
    larger = own.recipe.model_copy(
        update={"data": own.recipe.data.model_copy(update={"height": 20, "width": 20})}
    )
    with pytest.raises(RecipeError, match="start: it takes images of"):
        train(larger, tmp_path / "larger")
    values = replace(old, classes=np.array([0.0, 1.0]), answer=ValueRule((0.0, 1.0)))
    values.save(tmp_path / "values.safetensors")
    start = str(tmp_path / "values.safetensors")
    with pytest.raises(InputError, match="a classifier of classes"):
        train(recipe_from(source, start, PictureOptions()).recipe, tmp_path / "values")
    exits = load_recipe("digits", ["early_exit={}", f"start='{before / 'out'}'"])
    with pytest.raises(RecipeError, match="start: not with a teacher or early exits"):
        train(exits, tmp_path / "exits")


def test_classes_keep_their_weights_and_a_mean_its_members(before):
    old = visionshare.load(before / "out" / "classifier.safetensors")
    images = DIGITS.images[:50]
    scores = old.decision_function(images)
    more = with_classes(old, ["0", "00", "1"]).decision_function(images)
    np.testing.assert_allclose(more[:, [0, 2]], scores, rtol=1e-5, atol=1e-5)
    assert (more[:, 1] <= scores.max(axis=1) + 1e-5).all()
    assert members_of(old)[0] is old
    mean = averaged([old, with_classes(old, ["0", "1"])])
    parts = members_of(mean)
    assert len(parts) == 2
    np.testing.assert_allclose(
        averaged(parts).decision_function(images), mean.decision_function(images), atol=1e-4
    )
