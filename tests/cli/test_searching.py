"""Recipes with a section [search], which `visionshare train` searches."""

import pytest

from visionshare.cli.main import main
from visionshare.errors import RecipeError
from visionshare.recipes import load_recipe, train

SEARCHED = """
name = "few-digits"
data = {source = "digits", classes = ["0", "1"], limit = 60}

[search]
budget = 150
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "few-digits.toml"
    path.write_text(SEARCHED)
    return path


def test_train_searches_and_trains_what_was_chosen(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(recipe)]) == 0
    said = capsys.readouterr().out
    assert "rounds of pixels" in said
    chosen = load_recipe(tmp_path / "out" / "few-digits" / "recipe.toml")
    assert (chosen.search, chosen.features.pool) == (None, "pixels")
    assert chosen.data.limit == 60
    assert main(["train", str(recipe), "--resume"]) == 0
    assert "chosen before" in capsys.readouterr().out


def test_what_a_search_chooses_is_not_said_beside_it(recipe, tmp_path):
    with pytest.raises(RecipeError, match="not with fine_tuning, members, which it chooses"):
        load_recipe(recipe, ["members=2", "fine_tuning.epochs=2"])
    with pytest.raises(RecipeError, match=r"\[features\] or \[search\] is needed"):
        load_recipe(recipe, changes={"search": None})
    with pytest.raises(RecipeError, match="visionshare train"):
        train(load_recipe(recipe), tmp_path / "out")
    assert main(["train", str(recipe), "--set", "search.budget='much'"]) == 2
