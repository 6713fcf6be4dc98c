"""Which columns a recipe's search looks at: kept, drawn, or computed from the inputs' order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import RecipeError
from visionshare.recipes.schema import DrawsPart, Recipe
from visionshare.resources import parse_size

__all__ = ["check_columns", "make_columns", "searches_at_most"]

# Searches whose columns are made anew when they are asked for.
_NEVER_STORED = ("sampled", "stumps")


def check_columns(recipe: Recipe, family: Any) -> None:
    """Check that the search fits the family and the store, before any work.

    Raises
    ------
    RecipeError
        If it does not.
    """
    search = recipe.learner.search
    name = type(family).name
    if search == "sampled" and not family.is_continuous:
        raise RecipeError(
            f"learner.search: 'sampled' draws from a continuous family, such as gabor or fourier; "
            f"the pool {recipe.features.pool!r} is of the family {name!r}"
        )
    if search == "stumps" and name != "stumps":
        raise RecipeError(
            f"learner.search: 'stumps' takes a pool of the family 'stumps'; "
            f"{recipe.features.pool!r} is of the family {name!r}"
        )
    if search == "products":
        raise RecipeError("learner.search: 'products' is not for recipes; see ProductColumns")
    if search in _NEVER_STORED and recipe.store.where == "disk":
        raise RecipeError(f"store.where: the search {search!r} keeps no columns; leave it out")


def searches_at_most(recipe: Recipe) -> int:
    """Return how often a learner may search before it ends.

    Examples
    --------
    >>> from visionshare.recipes import load_recipe
    >>> searches_at_most(load_recipe("digits"))
    60
    """
    part = recipe.learner
    if part.kind == "shareboost":
        return part.rounds + part.n_backward
    if part.kind == "greedytl":
        return part.rounds
    # Before each candidate that enters all searches but one of its patience may find none.
    return (part.rounds + 1) * part.patience


def make_columns(
    recipe: Recipe, family: Any, images: np.ndarray, work: Path, jobs: int, progress: bool
) -> tuple[Any, Any]:
    """Return columns for the recipe's learner, and the features whose columns they are.

    Parameters
    ----------
    recipe : Recipe
    family : FeatureFamily
        Fitted.
    images : ndarray
        Training images.
    work : pathlib.Path
        Folder for columns that do not fit into memory.
    jobs : int
        Threads.
    progress : bool

    Returns
    -------
    columns : Columns
    features : FeatureFamily or Draws
        What the learner's ``to_classifier`` takes features from.
    """
    part, search = recipe.store, recipe.learner.search
    if search == "sampled":
        return _drawn(recipe, family, images, jobs)
    if search == "stumps":
        from visionshare.generators.stumps import StumpColumns

        return StumpColumns(family, images, jobs), family
    memory = parse_size(part.memory, "store.memory")
    size = len(images) * family.n_features_ * np.dtype(part.dtype).itemsize
    if part.where == "memory" or (part.where == "auto" and size <= memory // 2):
        from visionshare.columns import ArrayColumns

        return ArrayColumns.from_family(family, images, part.dtype, jobs, progress), family
    if part.where == "auto" and _in_rings(family):
        from visionshare.generators.anchors import AnchorColumns

        return AnchorColumns(family, images, jobs), family
    from visionshare.store import create_store

    columns = create_store(work / "store", family, images, part.dtype, memory, jobs)
    columns.fill(progress=progress)
    return columns, family


def _drawn(recipe: Recipe, family: Any, images: np.ndarray, jobs: int) -> tuple[Any, Any]:
    from visionshare.generators.draws import Draws
    from visionshare.store import DrawnColumns

    n = (recipe.draws or DrawsPart()).n
    draws = Draws(family, n, searches_at_most(recipe), recipe.seed)
    return DrawnColumns(draws, images, jobs), draws


def _in_rings(family: Any) -> bool:
    """Return whether a pool is of piece-wise linear anchors: searched without their columns."""
    return type(family).name == "anchors" and family.kind == "linear"
