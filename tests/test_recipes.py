"""Recipes: what is accepted, what is refused, and that a stopped run goes on."""

import csv
import json

import numpy as np
import pytest

import visionshare
from visionshare.errors import InputError, RecipeError
from visionshare.recipes import list_pipelines, load_recipe, train
from visionshare.recipes.schema import read_pool

SMALL = ["learner.rounds=6", "features.parameters.n_templates=20", "data.limit=400"]


@pytest.mark.parametrize("name", list_pipelines())
def test_bundled_recipes_are_sound(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.description
    assert read_pool(recipe.features, 0).get_params()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("learner.round=3", "unknown key 'learner.round'; did you mean 'rounds'?"),
        ("lerner.rounds=3", "unknown key 'lerner'; did you mean 'learner'?"),
        ("learner.rounds=0", "learner.rounds: .* greater than or equal to 1"),
        ("learner.rounds=many", "learner.rounds: .* valid integer"),
        ("learner", "a setting such as"),
        ("store.dtype=int8", "store.dtype: "),
        ("data.source.name=x", "'source' is no table"),
    ],
)
def test_wrong_settings_name_the_key(setting, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("digits", [setting])


def test_wrong_names_get_a_hint(tmp_path):
    with pytest.raises(RecipeError, match="did you mean 'digits'"):
        load_recipe("digit")
    (tmp_path / "a.toml").write_text("name = ")
    with pytest.raises(RecipeError, match=r"a\.toml: not sound TOML"):
        load_recipe(tmp_path / "a.toml")
    with pytest.raises(RecipeError, match="did you mean 'patches'"):
        read_pool(load_recipe("digits", ["features.pool=patchs"]).features, 0)
    with pytest.raises(RecipeError, match="did you mean 'n_templates'"):
        read_pool(load_recipe("digits", ["features.parameters.n_template=2"]).features, 0)


def test_train_writes_everything(tmp_path):
    result = train(load_recipe("digits", SMALL), tmp_path / "out")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"classifier.safetensors", "metrics.json", "path.csv", "report.html"}
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["rounds"] == metrics["features"] == 6
    assert metrics["test_error_rate"] == metrics["test_errors"] / metrics["test_images"]
    assert metrics["macs"] == result.classifier.macs
    assert set(metrics["seconds"]) >= {"data", "features", "columns", "learning", "evaluation"}
    with open(tmp_path / "out" / "path.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert float(rows[-1]["test_error"]) == pytest.approx(metrics["test_error_rate"])
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert model.metadata["pipeline"] == "digits"
    assert len(model.metadata["training_data"]) == 64


def test_memory_disk_and_threads_give_the_same_bits(tmp_path):
    found = []
    for number, (changes, jobs) in enumerate((
        (["store.where=memory"], 1), (["store.where=memory"], 2),
        (["store.where=disk", "store.memory=300kB"], 2), (["store.memory=300kB"], 1),
    )):  # fmt: skip
        recipe = load_recipe("digits", [*SMALL, *changes])
        model = train(recipe, tmp_path / str(number), jobs=jobs).classifier
        found.append((model.weights.tobytes(), model.intercept.tobytes(), model.temperature))
    assert len(set(found)) == 1


def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, monkeypatch):
    from visionshare.learners.checkpoint import Checkpoint

    recipe = load_recipe("digits", [*SMALL, "store.where=disk"])
    whole = train(recipe, tmp_path / "whole").classifier
    save = Checkpoint.save

    def stops(self, done):
        save(self, done)
        if done.number == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", stops)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "out")
    monkeypatch.setattr(Checkpoint, "save", save)
    other = load_recipe("digits", [*SMALL, "store.where=disk", "learner.strength=0.01"])
    with pytest.raises(RecipeError, match="holds another run"):
        train(other, tmp_path / "out", resume=True)
    resumed = train(recipe, tmp_path / "out", resume=True).classifier
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.temperature == whole.temperature


def test_deformed_copies_train(tmp_path):
    recipe = load_recipe("digits", [*SMALL, "deformations.copies=2"])
    assert train(recipe, tmp_path).metrics["train_images"] == 1200


def test_bad_values_stop_before_work(tmp_path):
    for setting in (
        "learner.penalty=none_at_all", "learner.criterion=best", "store.memory=much",
        'features.parameters.widths="wide"', "features.parameters.grid=1.5", "learner.search=luck",
    ):  # fmt: skip
        with pytest.raises(InputError):
            train(load_recipe("digits", [*SMALL, setting]), tmp_path / "out")
    assert not (tmp_path / "out").exists()
