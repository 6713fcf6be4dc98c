"""Recipes as files: read, changed by settings, and refused with a line that says why."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Discriminator, ValidationError

from visionshare.bundled import bundled
from visionshare.errors import RecipeError
from visionshare.recipes.schema import LEARNERS, LearnerPart, Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["first_problem", "hint", "list_pipelines", "load_recipe", "parse_setting", "read_toml"]


def list_pipelines() -> list[str]:
    """Return the names of the bundled recipes."""
    return sorted(bundled("pipelines"))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file.

    Raises
    ------
    RecipeError
        If it cannot be read or is not sound.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not sound TOML ({error})") from None


def parse_setting(text: str) -> tuple[list[str], Any]:
    """Return keys and value of ``part.key=value``; the value is read as TOML, else as text.

    Examples
    --------
    >>> parse_setting("learner.rounds=20")
    (['learner', 'rounds'], 20)
    >>> parse_setting("store.dtype=float32")
    (['store', 'dtype'], 'float32')
    """
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise RecipeError(f"--set {text!r}: a setting such as learner.rounds=20 is wanted")
    try:
        return key.split("."), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.split("."), value


def load_recipe(name_or_path: str | os.PathLike[str], settings: Sequence[str] = ()) -> Recipe:
    """Return a bundled recipe or one of a TOML file, with settings changed.

    Parameters
    ----------
    name_or_path : str or path-like
        A name of :func:`list_pipelines`, or a file.
    settings : sequence of str
        Changes such as ``"learner.rounds=20"``.

    Raises
    ------
    RecipeError
        If there is no such recipe, or a key or a value of it is not accepted.
    """
    known = bundled("pipelines")
    path = known.get(str(name_or_path), Path(name_or_path))
    if not path.is_file():
        near = hint(str(name_or_path), known)
        names = ", ".join(sorted(known))
        raise RecipeError(
            f"no pipeline {str(name_or_path)!r}{near} Known: {names}; or a .toml file"
        )
    values = read_toml(path)
    for text in settings:
        keys, value = parse_setting(text)
        table: Any = values
        for key in keys[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise RecipeError(f"--set {text!r}: {key!r} is no table")
        table[keys[-1]] = value
    try:
        return Recipe(**_tuples(values))
    except ValidationError as error:
        raise RecipeError(f"{path}: {first_problem(error, Recipe)}") from None


def _tuples(values: Any) -> Any:
    return {str(k): v for k, v in values.items()} if isinstance(values, dict) else values


def hint(name: str, known: Iterable[str]) -> str:
    """Return a question that names what is spelt nearly so, or a full stop."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def first_problem(error: ValidationError, model: Any) -> str:
    """Return what is wrong with a file in one line: where, what was given, what is accepted."""
    problems = error.errors()
    # A misspelt key is also a missing one: its right name says more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    keys, part = _place(problem["loc"], model)
    where = ".".join(keys)
    if problem["type"] == "union_tag_invalid":
        given = str(problem["ctx"]["tag"])
        known = ", ".join(LEARNERS)
        return f"{where}.kind: no learner {given!r}{hint(given, LEARNERS)} Known: {known}"
    if not keys:
        return problem["msg"].removeprefix("Value error, ")
    if problem["type"] != "extra_forbidden":
        return f"{where}: {problem['msg']} (got {problem['input']!r})"
    names = list(part.model_fields)
    return f"unknown key {where!r}{hint(keys[-1], names)} Known: {', '.join(names)}"


def _place(loc: tuple[Any, ...], model: Any) -> tuple[list[str], Any]:
    """Return a problem's keys as they stand in the file, and the model of the last one's table."""
    keys: list[str] = []
    part, table = model, model
    for key in loc:
        if part is LearnerPart:
            # Not a key: pydantic says which kind of learner it took the table for.
            part = LEARNERS[key]
            continue
        keys.append(str(key))
        # The number of an entry stands between a list and the keys of its entries.
        if isinstance(key, str):
            table = part
            fields = getattr(part, "model_fields", {})
            part = _model_of(fields[key]) if key in fields else None
    return keys, table


def _model_of(field: Any) -> Any:
    from typing import get_args

    if field.metadata:
        return LearnerPart if any(isinstance(m, Discriminator) for m in field.metadata) else None
    annotation = field.annotation
    return next((a for a in get_args(annotation) if a is not type(None)), annotation)
