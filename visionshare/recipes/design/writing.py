"""Recipes of structures: complete ones, as values and as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from visionshare.errors import InputError, RecipeError
from visionshare.recipes.design.settings import Design
from visionshare.recipes.design.structure import Structure
from visionshare.recipes.registry import DEFAULT_LEARNER
from visionshare.recipes.schema import Recipe, recipe_model

__all__ = ["check_base", "recipe_of", "toml_text", "trial_recipe"]

# Where a recipe has no fine-tuning: layers of templates learn by it.
_TUNING = {"epochs": 20, "rate": 0.01, "weight_standardization": True}
_LONGEST_NAME = 100


def check_base(recipe: Recipe) -> None:
    """Check that a recipe can have its structure replaced."""
    if recipe.learner.kind != DEFAULT_LEARNER:
        given = recipe.learner.kind
        raise RecipeError(f"design: needs learner.kind = {DEFAULT_LEARNER!r} (got {given!r})")
    for name in ("sources", "draws", "sparsify", "early_exit", "teacher"):
        if getattr(recipe, name) is not None:
            raise RecipeError(f"design: not with {name}; the recipe that is found may have it")
    if recipe.members > 1:
        raise RecipeError("design: not with members; the recipe that is found may have them")
    if recipe.fine_tuning is not None and recipe.fine_tuning.max_features is not None:
        raise RecipeError("design: not with fine_tuning.max_features; n_templates are drawn")


def recipe_of(base: Recipe, structure: Structure, design: Design) -> Recipe:
    """Return a recipe with another structure, complete."""
    values = _plain(base.model_dump(exclude_unset=True))
    values.pop("design", None)
    values["name"] = f"{base.name[: _LONGEST_NAME - 9]}-designed"
    values["description"] = str(structure)
    values["features"] = structure.features(design.templates_per_round, design.n_patches)
    values.setdefault("learner", {})["rounds"] = structure.n_templates
    tuning = values.setdefault("fine_tuning", dict(_TUNING))
    tuning["head"] = structure.head
    tuning.pop("n_units", None)
    if structure.n_units:
        tuning["n_units"] = structure.n_units
    tuning["search_images"] = min(
        tuning.get("search_images", design.search_images), design.search_images
    )
    return recipe_model(base.learner.kind)(**values)


def trial_recipe(recipe: Recipe, design: Design, epochs: int) -> Recipe:
    """Return a complete recipe on the images and with the epochs of a trial."""
    # Parameters are not averaged: over the few steps of a trial the average would reach back to
    # where it began.
    data, tuning = recipe.data, recipe.fine_tuning
    images = {
        "held_out": data.held_out or design.held_out,
        "limit": design.images if data.limit is None else min(data.limit, design.images),
    }
    changes = {
        "data": data.model_copy(update=images),
        "fine_tuning": tuning.model_copy(update={"epochs": epochs, "averaging": 0.0}),
    }
    return recipe.model_copy(update=changes)


def _plain(value: Any) -> Any:
    """Return nested values as TOML has them: without None, sequences as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value


def toml_text(recipe: Recipe, remarks: Sequence[str] = ()) -> str:
    """Return a recipe as TOML: what it says, not what is a default."""
    values = _plain(recipe.model_dump(exclude_unset=True))
    lines = [f"# {remark}" for remark in remarks] + _table(values, ())
    text = "\n".join(lines) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("recipe", recipe.name, "names of files that are Unicode") from None
    return text


def _table(values: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    """Return the lines of a table: its own values first, then the tables in it."""
    own = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(map(_key, keys))}]"] if keys and (own or not values) else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in own.items()]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*keys, key))
    return lines


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)


def _text(text: str) -> str:
    """Return a basic string: JSON's escapes are among TOML's, which escapes one character more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
