"""Recipes as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from visionshare.errors import InputError
from visionshare.recipes.schema import Recipe


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
