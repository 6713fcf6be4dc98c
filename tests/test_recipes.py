"""Recipes: what is accepted, what is refused, and that a stopped run goes on."""

import csv
import json

import numpy as np
import pytest

import visionshare
from visionshare.bundled import bundled
from visionshare.errors import InputError, RecipeError
from visionshare.recipes import list_pipelines, load_recipe, train
from visionshare.recipes.schema import FeaturePart, read_pool

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


UNION = """
family = "union"
description = "two small parts"

[[parts]]
pool = "small-patches"

[parts.parameters]
n_templates = 12

[[parts]]
pool = "waves.toml"
name = "waves"
"""
WAVES = """
family = "gabor"

[parameters]
n_filters = 9
"""


def _pool(folder, text=UNION, **parameters):
    (folder / "both.toml").write_text(text)
    (folder / "waves.toml").write_text(WAVES)
    return FeaturePart(pool=str(folder / "both.toml"), parameters=parameters)


def test_a_pool_of_parts(tmp_path):
    patches, waves = read_pool(_pool(tmp_path), 7).families
    assert (patches.n_templates, patches.grid, patches.random_state) == (12, 3, 7)
    assert (waves.n_filters, waves.random_state) == (9, 7)
    changed = read_pool(_pool(tmp_path, waves={"n_filters": 4}), 0).families
    assert (changed[0].n_templates, changed[1].n_filters) == (12, 4)
    inside = read_pool(_pool(tmp_path, UNION.replace("small-patches", "patches-gabor").replace(
        "n_templates = 12", "gabor.n_filters = 3"
    )), 0)  # fmt: skip
    assert inside.families[0].families[1].n_filters == 3
    inside.check_parameters()


@pytest.mark.parametrize("name", bundled("features"))
def test_bundled_pools_are_sound(name):
    assert bundled("features")[name].read_text().count("description = ") == 1
    read_pool(FeaturePart(pool=name), 0).check_parameters()


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ('pool = "x"', {}, r"both\.toml: unknown key 'pool'.* Known: family"),
        ("famly = 'gabor'", {}, r"both\.toml: unknown key 'famly'; did you mean 'family'\?"),
        ("description = ''", {}, r"both\.toml: family: Field required"),
        ("family = 3", {}, r"both\.toml: family: .*\(got 3\)"),
        ("family = 'gabr'", {}, r"both\.toml: no family 'gabr'; did you mean 'gabor'\?"),
        ("family = 'union'", {}, r"both\.toml: parts: "),
        ("family = 'union'\nparts = []", {}, r"both\.toml: parts: "),
        ("family = 'union'\nparts = 3", {}, r"both\.toml: parts: .*\(got 3\)"),
        (UNION.replace("union", "gabor"), {}, r"both\.toml: parts: "),
        (UNION.replace("name =", "nam ="), {}, r"unknown key 'parts.1.nam'; did you mean 'name'"),
        (UNION.replace('pool = "s', 'pol = "s'), {}, r"'parts.0.pol'; did you mean 'pool'\?"),
        (
            UNION.replace("n_temp", "n_tmp"),
            {},
            r"small-patches\.toml: .*did you mean 'n_templates'",
        ),
        (UNION.replace("small-", "smal-"), {}, r"'smal-patches'; did you mean 'small-patches'"),
        (UNION.replace('"waves"', '"small-patches"'), {"small-patches": {}}, r"give each its own"),
        (UNION.replace("waves.toml", "both.toml"), {}, r"at most 4 pools inside each other"),
        (UNION, {"wave": {}}, r"both\.toml: unknown part 'wave'; did you mean 'waves'\?"),
        (UNION, {"waves": 3}, r"both\.toml: waves: a table of parameters is wanted \(got 3\)"),
        (UNION, {"waves": {"n": 3}}, r"part 'waves': .*waves\.toml: unknown parameter 'n'"),
    ],
)
def test_wrong_pools_name_file_and_key(text, parameters, message, tmp_path):
    with pytest.raises(RecipeError, match=message):
        read_pool(_pool(tmp_path, text, **parameters), 0)


def test_a_union_trains_from_end_to_end(tmp_path):
    part = _pool(tmp_path)
    settings = ["learner.rounds=6", "data.limit=400", f"features.pool={part.pool}"]
    settings += ["features.parameters.small-patches.n_templates=8", "store.where=disk"]
    result = train(load_recipe("digits", settings), tmp_path / "out")
    model = visionshare.load(tmp_path / "out" / "classifier.safetensors")
    assert model.summary()["family"] == "union"
    assert model.n_features == 6
    assert model.macs == result.metrics["macs"]
    assert result.metrics["test_error_rate"] < 0.5
    kinds = {described["kind"] for described in model.features}
    assert kinds <= {"patch", "gabor"}
    assert model.metadata["recipe"]["features"]["parameters"] == {
        "small-patches": {"n_templates": 8}
    }


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

    def stops(self, done, place):
        save(self, done, place)
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
