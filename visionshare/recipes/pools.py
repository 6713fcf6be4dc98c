"""Pools of features: a family and its parameters from a file, with a recipe's changes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from visionshare.bundled import bundled
from visionshare.errors import RecipeError
from visionshare.generators import FeatureFamily, family_class, family_names
from visionshare.names import did_you_mean, nothing_named
from visionshare.recipes.reading import first_problem, read_toml
from visionshare.recipes.schema import FeaturePart, PoolFile, PoolPart

__all__ = ["LISTED_POOLS", "read_pool"]

_DEEPEST_POOL = 8
#: Where an error without a nearer hint sends its reader.
LISTED_POOLS = "`visionshare list pools` lists them"


def read_pool(part: FeaturePart, seed: int) -> FeatureFamily:
    """Return the unfitted feature family of a recipe.

    The parameters of a pool of parts are tables by the names of the parts, beside the parameters of
    the family around them.

    Raises
    ------
    RecipeError
        If the pool is unknown, or a key or a parameter of it.
    """
    return _family(part.pool, Path(), part.parameters, seed, _DEEPEST_POOL)


def _family(
    pool: str, folder: Path, changes: Mapping[str, Any], seed: int, levels: int
) -> FeatureFamily:
    """Return the unfitted family of a pool, by its name or by its file in a folder."""
    known = bundled("features")
    path = known.get(pool, folder / pool)
    if not os.path.isfile(path):
        raise RecipeError(nothing_named(pool, "pool of features", known, LISTED_POOLS))
    try:
        file = PoolFile(**read_toml(path))
    except ValidationError as error:
        raise RecipeError(f"{path}: {first_problem(error, PoolFile)}") from None
    names = family_names()
    if file.family not in names:
        near = did_you_mean(file.family, names)
        raise RecipeError(f"{path}: no family {file.family!r}{near}")
    family, parameters = family_class(file.family), {**file.parameters, **changes}
    n = len(file.parts)
    fits, takes = {
        "none": (n == 0, "none"),
        "one": (n == 1, "one"),
        "several": (n >= 1, "one or more"),
    }[family.inner_families]
    if not fits:
        raise RecipeError(f"{path}: parts: {file.family!r} takes {takes} (got {n})")
    if not file.parts:
        return _plain(path, family, parameters, seed)
    own = _own(family, file.parts)
    of_parts = {key: value for key, value in parameters.items() if key not in own}
    around = family.from_families(_parts(path, file.parts, of_parts, seed, levels))
    drawn = {"random_state": seed} if "random_state" in own else {}
    given = {key: value for key, value in parameters.items() if key in own}
    return around.set_params(**{**drawn, **given})


def _own(family: type[FeatureFamily], parts: Sequence[PoolPart]) -> set[str]:
    """Return the parameters of a family of others that are no families, nor names of parts."""
    inner = {"family", "families", *(part.name or part.pool for part in parts)}
    return set(family().get_params()) - inner


def _plain(
    path: Path, family: type[FeatureFamily], parameters: Mapping[str, Any], seed: int
) -> FeatureFamily:
    """Return a family without parts; where it draws at random, with the recipe's seed."""
    names = list(family().get_params())
    for key in parameters:
        if key not in names:
            near = did_you_mean(key, names)
            raise RecipeError(f"{path}: unknown parameter {key!r}{near}")
    drawn = {"random_state": seed} if "random_state" in names else {}
    return family(**{**drawn, **parameters})


def _parts(
    path: Path, parts: Sequence[PoolPart], changes: Mapping[str, Any], seed: int, levels: int
) -> list[FeatureFamily]:
    """Return the families of a pool's parts."""
    if levels == 0:
        raise RecipeError(f"{path}: parts: at most {_DEEPEST_POOL} pools inside each other")
    names = [part.name or part.pool for part in parts]
    for name, change in changes.items():
        if name not in names:
            near = did_you_mean(name, names)
            raise RecipeError(f"{path}: unknown part {name!r}{near}")
        if names.count(name) > 1:
            raise RecipeError(f"{path}: parts: several have the name {name!r}; give each its own")
        if not isinstance(change, dict):
            raise RecipeError(f"{path}: {name}: a table of parameters is wanted (got {change!r})")
    families = []
    for name, part in zip(names, parts, strict=True):
        parameters = {**part.parameters, **changes.get(name, {})}
        try:
            families.append(_family(part.pool, path.parent, parameters, seed, levels - 1))
        except RecipeError as error:
            raise RecipeError(f"{path}: part {name!r}: {error}") from None
    return families
