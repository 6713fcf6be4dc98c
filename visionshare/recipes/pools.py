"""Pools of features: a family and its parameters from a file, with a recipe's changes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from visionshare.errors import InputError, RecipeError
from visionshare.errors.names import did_you_mean, nothing_named
from visionshare.files.bundled import bundled
from visionshare.generators import FeatureFamily, family_class, family_names
from visionshare.generators.layers.family.layer import Features
from visionshare.generators.layers.layer import Layer
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.registry import layer_class
from visionshare.recipes.reading import first_problem, read_toml
from visionshare.recipes.schema import FeaturePart, PoolFile, PoolPart

__all__ = ["LISTED_POOLS", "read_pool"]

_DEEPEST_POOL = 8
#: Where an error without a nearer hint sends its reader.
LISTED_POOLS = "`visionshare list pools` lists them"


def read_pool(part: FeaturePart, seed: int) -> FeatureFamily:
    """Return the unfitted feature family of a recipe."""
    # The parameters of a pool of parts are tables by the names of the parts, beside the
    # parameters of the family around them.
    return _family(part.pool, Path(), part.parameters, seed, _DEEPEST_POOL)


def _family(
    pool: str, folder: Path, changes: Mapping[str, Any], seed: int, levels: int
) -> FeatureFamily:
    """Return the unfitted family of a pool, by its name or by its file in a folder."""
    if levels < 0:
        raise RecipeError(f"layers: at most {_DEEPEST_POOL} pools inside each other")
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
    if file.family == Network.name:
        return _network(path, file.layers, parameters, seed, levels)
    n = len(file.parts)
    fits, takes = {
        "none": (n == 0, "none"),
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


def _network(
    path: Path,
    layers: Sequence[Mapping[str, Any]],
    changes: Mapping[str, Any],
    seed: int,
    levels: int,
) -> Network:
    """Return the unfitted network of a pool: its layers, with the changes of a recipe."""
    # Changes are the whole list as ``layers``, and tables of parameters by a layer's name, which
    # is its key ``name``, or its kind and its number from 1, such as "templates-2".
    changes = dict(changes)
    listed = changes.pop("layers", layers)
    seed = changes.pop("random_state", seed)
    if not isinstance(listed, list) or not all(isinstance(layer, Mapping) for layer in listed):
        raise RecipeError(f"{path}: layers: a list of tables is wanted (got {listed!r})")
    named = {_name_of(number, layer): layer for number, layer in enumerate(listed, 1)}
    for name, change in changes.items():
        if name not in named:
            near = did_you_mean(name, named)
            raise RecipeError(f"{path}: unknown layer {name!r}{near}")
        if not isinstance(change, Mapping):
            raise RecipeError(f"{path}: {name}: a table of parameters is wanted (got {change!r})")
    made = []
    for name, layer in named.items():
        values = {key: value for key, value in layer.items() if key != "name"}
        values |= changes.get(name, {})
        try:
            made.append(_layer(path, values, seed, levels))
        except (InputError, RecipeError) as error:
            raise RecipeError(f"{path}: layer {name!r}: {error}") from None
    return Network(made, random_state=seed)


def _name_of(number: int, layer: Mapping[str, Any]) -> str:
    return str(layer.get("name", f"{layer.get('kind')}-{number}"))


def _layer(path: Path, values: Mapping[str, Any], seed: int, levels: int) -> Layer:
    """Return an unfitted layer of a table: its kind and its parameters."""
    parameters = {key: value for key, value in values.items() if key != "kind"}
    cls = layer_class(values.get("kind"))
    if cls.kind == Features.kind:
        pool = str(parameters.pop("pool", ""))
        return Features(_family(pool, path.parent, parameters, seed, levels - 1))
    names = list(cls().get_params())
    for key in parameters:
        if key not in names:
            near = did_you_mean(key, names)
            raise RecipeError(f"unknown parameter {key!r}{near}")
    return cls(**parameters)


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
