"""Recipes: a TOML file that says data, features, learner and budget; and its execution."""

from visionshare.recipes.reading import list_pipelines, load_recipe
from visionshare.recipes.schema import Recipe
from visionshare.recipes.training import TrainResult, train

__all__ = ["Recipe", "TrainResult", "list_pipelines", "load_recipe", "train"]
