"""A pool of straightened images in a recipe: images are straight first and deformed after that.

Where deformed copies were straightened, their own slants would be lost. So all that a run learns
from is straight; that the classifier straightens is said at the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from visionshare.classifier import CompactClassifier
from visionshare.datasets import ImageSet
from visionshare.generators.straightened import Straightened, straightened
from visionshare.recipes.pools import read_pool
from visionshare.recipes.schema import Recipe

__all__ = ["of_straight_images", "straight", "straightening", "straightens"]


def straightens(recipe: Recipe) -> bool:
    """Return whether a recipe's pool is of straightened images.

    Examples
    --------
    >>> from visionshare.recipes import load_recipe
    >>> straightens(load_recipe("mnist")), straightens(load_recipe("mnist-deformed"))
    (False, True)
    """
    return isinstance(read_pool(recipe.features, recipe.seed), Straightened)


def straight(held: ImageSet, jobs: int = 1) -> ImageSet:
    """Return the same images, straightened."""
    return replace(held, images=straightened(held.images, jobs))


def of_straight_images(family: Any) -> Any:
    """Return the family whose features of straight images these are."""
    return family.family if isinstance(family, Straightened) else family


def straightening(classifier: CompactClassifier) -> CompactClassifier:
    """Return a classifier of straight images as one that straightens them itself."""
    return classifier.with_family(Straightened.of(classifier.family))
