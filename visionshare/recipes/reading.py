"""Recipes as files: read, changed by settings, and refused with a line that says why."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from visionshare.errors import RecipeError
from visionshare.errors.inputs import checked_path
from visionshare.errors.names import did_you_mean, nothing_named
from visionshare.files.bundled import LISTED_PIPELINES, bundled
from visionshare.files.toml import parse_toml, read_toml_file
from visionshare.recipes.registry import DEFAULT_LEARNER, learner_kinds
from visionshare.recipes.schema import Recipe, recipe_model
from visionshare.recipes.sections import INVALID


def list_pipelines() -> list[str]:
    """Return the names of the bundled recipes.

    Examples
    --------
    >>> "mnist-10k" in list_pipelines()
    True
    """
    return sorted(bundled("pipelines"))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file."""
    try:
        return read_toml_file(path)
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        # Text that is no UTF-8, numbers of thousands of digits and thousands of brackets too.
        raise RecipeError(f"{path}: invalid TOML ({error})") from None


def parse_recipe(text: str) -> Recipe:
    """Return the recipe of a text in TOML that this library wrote."""
    try:
        values = parse_toml(text)
    except ValueError as error:
        raise RecipeError(f"invalid TOML ({error})") from None
    return parse_values(values)


def parse_values(values: Mapping[str, Any]) -> Recipe:
    """Return the recipe of nested values that this library wrote."""
    kind = values.get("learner", {}).get("kind", DEFAULT_LEARNER)
    try:
        return recipe_model(kind)(**values)
    except ValidationError as error:
        raise RecipeError(f"recipe: {first_problem(error, recipe_model(kind))}") from None


def parse_setting(text: str) -> tuple[list[str], Any]:
    """Return keys and value of ``part.key=value``; the value is read as TOML, else as text."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise RecipeError(f"--set {text!r}: give a setting such as learner.rounds=20")
    try:
        return key.split("."), parse_toml(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return key.split("."), value


def load_recipe(
    name_or_path: str | os.PathLike[str],
    settings: Sequence[str] = (),
    changes: Mapping[str, Any] | None = None,
) -> Recipe:
    """Return a bundled recipe or one of a TOML file, with settings changed.

    Parameters
    ----------
    name_or_path : str or path-like
        A name of :func:`list_pipelines`, or a file.
    settings : sequence of str
        Changes such as ``"learner.rounds=20"``.
    changes : mapping, optional
        Changes as nested tables, made before ``settings``; None removes a key.

    Raises
    ------
    RecipeError
        If there is no such recipe, or a key or a value of it is not accepted.

    Examples
    --------
    >>> load_recipe("digits", ["learner.rounds=20"]).learner.rounds
    20
    """
    known = bundled("pipelines")
    path = known.get(str(name_or_path), checked_path("name_or_path", name_or_path))
    if not os.path.isfile(path):
        kind = "recipe file or pipeline"
        raise RecipeError(nothing_named(name_or_path, kind, known, LISTED_PIPELINES))
    values = _merged(read_toml(path), changes or {})
    for text in settings:
        keys, value = parse_setting(text)
        table: Any = values
        for key in keys[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise RecipeError(f"--set {text!r}: {key!r} is no table")
        table[keys[-1]] = value
    learner = values.get("learner", {})
    kind = learner.get("kind", DEFAULT_LEARNER) if isinstance(learner, dict) else DEFAULT_LEARNER
    if kind not in (kinds := learner_kinds()):
        near = did_you_mean(str(kind), kinds, f"Known: {', '.join(kinds)}.")
        raise RecipeError(f"{path}: learner.kind: no learner {str(kind)!r}{near}")
    model = recipe_model(kind)
    try:
        return model(**values)
    except ValidationError as error:
        raise RecipeError(f"{path}: {first_problem(error, model)}") from None


def _merged(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables with changes in them."""
    merged = dict(values)
    for key, change in changes.items():
        before = merged.get(key)
        if isinstance(change, Mapping) and isinstance(before, dict):
            merged[key] = _merged(before, change)
        elif change is None:
            merged.pop(key, None)
        else:
            merged[key] = change
    return merged


def first_problem(error: ValidationError, model: type[BaseModel]) -> str:
    """Return what is wrong with a file in one line: where, what was given, what is accepted."""
    problems = error.errors()
    # A misspelled key is also a missing one: its right name says more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    keys, table = _keys(problem["loc"], model)
    if problem["type"] == INVALID:
        key = problem["ctx"]["key"]
        return f"{'.'.join([*keys, key] if key else keys)}: {problem['msg']}"
    where = ".".join(keys)
    if not keys:
        return problem["msg"].removeprefix("Value error, ")
    if problem["type"] != "extra_forbidden":
        return f"{where}: {problem['msg']} (got {problem['input']!r})"
    names = list(table.model_fields)
    known = f"Known: {', '.join(names)}."
    return f"unknown key {where!r}{did_you_mean(keys[-1], names, known)}"


def _keys(loc: tuple[Any, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """Return a problem's keys as they stand in the file, and the model of the last one's table."""
    keys: list[str] = []
    inner: type[BaseModel] | None = model
    table = model
    for key in loc:
        if isinstance(key, int):
            # The number of an entry stands between a list and the keys of its entries.
            keys.append(str(key))
        elif inner is not None:
            keys.append(key)
            table = inner
            fields = inner.model_fields
            inner = _model_of(fields[key].annotation) if key in fields else None
        # Else the name of an alternative type, which is no key.
    return keys, table


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model of a field's table, or of the tables in its list."""
    for part in (annotation, *get_args(annotation)):
        # Python 3.10 takes list[Model] for a class.
        if get_origin(part) is None and inspect.isclass(part) and issubclass(part, BaseModel):
            return part
    return None
