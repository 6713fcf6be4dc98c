"""Recipes: a TOML file that says data, features, learner and budget; and its execution."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from visionshare.recipes.reading import list_pipelines, load_recipe
    from visionshare.recipes.schema import Recipe
    from visionshare.recipes.training import TrainResult, train

# Some commands read a pool of features alone: learners are imported where they are used.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "reading": ["list_pipelines", "load_recipe"],
        "schema": ["Recipe"],
        "training": ["TrainResult", "train"],
    },
)
__all__ = ["Recipe", "TrainResult", "list_pipelines", "load_recipe", "train"]
