"""The second stage: the family of candidate features, fitted to the training images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from visionshare.generators.sources.scores import LinearSource
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import Recipe
from visionshare.recipes.sources import sources_family
from visionshare.recipes.stages.images import RunImages

__all__ = ["fitted_family"]


def fitted_family(recipe: Recipe, images: RunImages, sources: Sequence[LinearSource] = ()) -> Any:
    """Return the recipe's pool, fitted; scores of source classifiers are features too."""
    family = read_pool(recipe.features, recipe.seed)
    if sources:
        from visionshare.generators.union import UnionOfFamilies

        family = UnionOfFamilies((family, sources_family(sources, images.training.images)))
    family.fit(images.originals)
    return family
