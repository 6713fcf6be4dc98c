"""Recipes as TOML."""

import pytest

from visionshare.errors import InputError
from visionshare.recipes import load_recipe
from visionshare.recipes.writing import toml_text

LAYERS = "[{kind='templates', n_templates=9, size=3}, {kind='deslant'}]"


def test_recipes_are_read_as_they_were_written(tmp_path):
    settings = [
        'description="a \\"quoted\\" \\\\ text\\u007f\\n"', "seed=7", "learner.search='random'",
        "learner.search_options={n=5}", "data.classes=['1','2','=']", "learner.alpha=1e-5",
        "fine_tuning={epochs=7, averaging=0.9}", "store.memory=12345", 'features.pool="network"',
        f"features.parameters={{layers={LAYERS}, \"a key\"={{b=1}}}}",
    ]  # fmt: skip
    recipe = load_recipe("digits", settings)
    path = tmp_path / "recipe.toml"
    path.write_text(toml_text(recipe, ["One.", "Two."]), encoding="utf-8")
    assert load_recipe(path) == recipe
    assert path.read_text(encoding="utf-8").startswith("# One.\n# Two.\n")


def test_a_recipe_that_is_not_read_back_is_not_written():
    recipe = load_recipe("digits").model_copy(update={"description": "\udcff"})
    with pytest.raises(InputError, match="Unicode"):
        toml_text(recipe)
