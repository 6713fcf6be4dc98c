"""Settings of recipes: what is accepted, and that what is refused names the key."""

import pytest

from visionshare.errors import DataError, RecipeError
from visionshare.recipes import list_pipelines, load_recipe
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import FeaturePart
from visionshare.recipes.source_classifiers import read_sources


@pytest.mark.parametrize("name", list_pipelines())
def test_bundled_recipes_are_valid(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.description
    read_pool(recipe.features, 0).check_parameters()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("learner.round=3", "unknown key 'learner.round'. Did you mean 'rounds'?"),
        ("lerner.rounds=3", "unknown key 'lerner'. Did you mean 'learner'?"),
        ("learner.rounds=0", "learner.rounds: got 0; accepted: a whole number of at least 1"),
        ("learner.rounds=many", "learner.rounds: .* valid integer"),
        ("learner", "a setting such as"),
        ("store.dtype=int8", "store.dtype: "),
        ("data.source.name=x", "'source' is no table"),
        ("learner.kind=grlf", "learner.kind: no learner 'grlf'. Did you mean 'grfl'"),
        ("learner.kind=3", "learner.kind: no learner '3'. Known: dense, forward_greedy, greedytl"),
        ("learner=3", "learner: .*got 3"),
        ("draws.n=0", "draws.n: .* greater than or equal to 1"),
        ("draws.n=5", "draws: they need learner.search = .sampled"),
        ("draws.m=5", "unknown key 'draws.m'"),
        ("preprocessing.polarty='automatic'", "unknown key 'preprocessing.polarty'. .*'polarity'"),
        ("preprocessing.fit='shrink'", "preprocessing.fit: got 'shrink'; accepted: 'resize'"),
        ("preprocessing.polarity='as_is'", "preprocessing.contrast: .*what is ink"),
        ("preprocessing.threshold='much'", "preprocessing.threshold: .* valid number"),
        ("data.fit='center'", "data.fit: got 'center'; say preprocessing.fit alone"),
        ("data.height=28", "data.width: got None; accepted: .* together with .*height"),
        ("data.cut.sise=5", "unknown key 'data.cut.sise'. Did you mean 'size'"),
    ],
)
def test_wrong_settings_name_the_key(setting, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("digits", [setting])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("learner.round=3", r"unknown key 'learner.round'. Did you mean 'rounds'\?"),
        ("learner.criterion=line", "unknown key 'learner.criterion'.* Known: kind, .*solver"),
        ("learner.rounds=0", "^[^']*learner.rounds: got 0; accepted: a whole number of at least 1"),
        ("learner.alpha=much", "learner.alpha: .* valid number"),
        ("learner.patience=0", "learner.patience: "),
        ("learner.gap_tol=1", r"learner.gap_tol: got 1.*; accepted: a fraction in \[0, 1\)"),
    ],
)
def test_wrong_settings_of_the_other_learner(setting, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("digits", ["learner={kind='grfl'}", setting])


def test_wrong_names_get_a_hint(tmp_path):
    with pytest.raises(RecipeError, match="Did you mean 'digits'"):
        load_recipe("digit")
    (tmp_path / "a.toml").write_text("name = ")
    with pytest.raises(RecipeError, match=r"a\.toml: invalid TOML"):
        load_recipe(tmp_path / "a.toml")
    with pytest.raises(RecipeError, match="Did you mean 'patches'"):
        read_pool(load_recipe("digits", ["features.pool=patchs"]).features, 0)
    with pytest.raises(RecipeError, match="Did you mean 'n_templates'"):
        read_pool(load_recipe("digits", ["features.parameters.n_template=2"]).features, 0)


@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000])
def test_values_that_no_parser_follows_are_refused(value, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(f"name = {value}\n")
    with pytest.raises(RecipeError, match="invalid TOML"):
        load_recipe(path)
    with pytest.raises(RecipeError, match="rounds"):
        load_recipe("digits", [f"learner.rounds={value}"])


def test_names_that_no_system_accepts_are_unknown():
    with pytest.raises(RecipeError, match="no recipe file or pipeline"):
        load_recipe("a" * 5000)
    with pytest.raises(RecipeError, match="no pool"):
        read_pool(FeaturePart(pool="a" * 5000), 0)
    with pytest.raises(DataError, match="no classifier file or folder of them"):
        read_sources(["a" * 5000])


@pytest.mark.parametrize("n", ['"many"', "nan", "inf", "[1]"])
def test_options_of_the_wrong_type_are_refused(n):
    settings = ['learner.search="random"', f"learner.search_options.n={n}"]
    with pytest.raises(RecipeError, match="learner"):
        load_recipe("digits", settings)
