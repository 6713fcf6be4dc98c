"""Pools of features: a family and its parameters from a file, with a recipe's changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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
        raise RecipeError(f"at most {_DEEPEST_POOL} pools inside each other")
    # 1) the file
    known = bundled("features")
    path = known.get(pool, folder / pool)
    if not os.path.isfile(path):
        raise RecipeError(nothing_named(pool, "pool of features", known, LISTED_POOLS))
    try:
        file = PoolFile(**read_toml(path))
    except ValidationError as error:
        raise RecipeError(f"{path}: {first_problem(error, PoolFile)}") from None
    _check_known(path, "family", [file.family], family_names())
    family = family_class(file.family)
    parameters = {**file.parameters, **changes}
    # 2) a list of layers, a family of others, or a family alone
    if family is Network:
        return _network(path, file.layers, parameters, seed, levels)
    takes_parts = family.inner_families == "several"
    if takes_parts != bool(file.parts):
        takes = "one or more" if takes_parts else "none"
        given = len(file.parts)
        raise RecipeError(f"{path}: parts: {file.family!r} takes {takes} (got {given})")
    if takes_parts:
        return _around_parts(path, family, file.parts, parameters, seed, levels)
    _check_known(path, "parameter", parameters, family().get_params())
    return family(**{**_drawn(family, seed), **parameters})


def _check_known(path: Path, what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Check that names are among those that are known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise RecipeError(f"{path}: unknown {what} {name!r}{did_you_mean(name, known)}")


def _drawn(family: type[FeatureFamily], seed: int) -> dict[str, int]:
    """Return the recipe's seed, where a family draws at random."""
    return {"random_state": seed} if "random_state" in family().get_params() else {}


def _changed(path: Path, changes: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the changes of a layer or a part."""
    change = changes.get(name, {})
    if not isinstance(change, Mapping):
        raise RecipeError(f"{path}: {name}: a table of parameters is wanted (got {change!r})")
    return change


def _network(
    path: Path,
    layers: Sequence[Mapping[str, Any]],
    changes: dict[str, Any],
    seed: int,
    levels: int,
) -> Network:
    """Return the unfitted network of a pool: its layers, with the changes of a recipe."""
    # Changes are the whole list as ``layers``, and tables of parameters by a layer's name, which
    # is its key ``name``, or its kind and its number from 1, such as "templates-2".
    listed = changes.pop("layers", layers)
    seed = changes.pop("random_state", seed)
    if not isinstance(listed, list) or not all(isinstance(layer, Mapping) for layer in listed):
        raise RecipeError(f"{path}: layers: a list of tables is wanted (got {listed!r})")
    named = {
        str(layer.get("name", f"{layer.get('kind')}-{number}")): layer
        for number, layer in enumerate(listed, 1)
    }
    _check_known(path, "layer", changes, named)
    made = []
    for name, layer in named.items():
        values = {**layer, **_changed(path, changes, name)}
        values.pop("name", None)
        try:
            made.append(_layer(path, values, seed, levels))
        except (InputError, RecipeError) as error:
            raise RecipeError(f"{path}: layer {name!r}: {error}") from None
    return Network(made, random_state=seed)


def _layer(path: Path, parameters: dict[str, Any], seed: int, levels: int) -> Layer:
    """Return an unfitted layer of a table: its kind and its parameters."""
    layer = layer_class(parameters.pop("kind", None))
    if layer.kind == Features.kind:
        pool = str(parameters.pop("pool", ""))
        return Features(_family(pool, path.parent, parameters, seed, levels - 1))
    _check_known(path, "parameter", parameters, layer().get_params())
    return layer(**parameters)


def _around_parts(
    path: Path,
    family: type[FeatureFamily],
    parts: Sequence[PoolPart],
    parameters: Mapping[str, Any],
    seed: int,
    levels: int,
) -> FeatureFamily:
    """Return a family of others: parameters are its own, or tables by the names of the parts."""
    names = [part.name or part.pool for part in parts]
    own = set(family().get_params()) - {"family", "families", *names}
    given = {key: value for key, value in parameters.items() if key in own}
    changes = {key: value for key, value in parameters.items() if key not in own}
    _check_known(path, "part", changes, names)
    inner = []
    for name, part in zip(names, parts, strict=True):
        if name in changes and names.count(name) > 1:
            raise RecipeError(f"{path}: parts: several have the name {name!r}; give each its own")
        changed = {**part.parameters, **_changed(path, changes, name)}
        try:
            inner.append(_family(part.pool, path.parent, changed, seed, levels - 1))
        except RecipeError as error:
            raise RecipeError(f"{path}: part {name!r}: {error}") from None
    return family.from_families(inner).set_params(**{**_drawn(family, seed), **given})
