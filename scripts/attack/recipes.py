"""Recipes, pools and catalog entries (TOML) with faults."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scripts.attack.classifiers import change_json
from scripts.attack.damage import Inputs, mutated

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["CATALOGS", "RECIPES"]

_ROOT = Path(__file__).parents[2]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_DEEP = (b"a = " + b"[" * 3000, b"[" + b".".join([b"a"] * 3000) + b"]\n", b"a = " + b"9" * 5000)


@cache
def recipe_seeds() -> list[bytes]:
    """Return the bundled recipes, the first line of each says what it is."""
    return [path.read_bytes() for path in sorted((_ROOT / "pipelines").glob("*.toml"))]


@cache
def catalog_seeds() -> list[bytes]:
    """Return the bundled catalog."""
    return [path.read_bytes() for path in sorted((_ROOT / "data").glob("*.toml"))]


def mutated_toml(seeds: list[bytes], rng: np.random.Generator) -> bytes:
    """Return damaged text, or valid text of absurd values."""
    content = seeds[rng.integers(0, len(seeds))]
    if rng.random() < 0.01:
        return _DEEP[rng.integers(0, len(_DEEP))]
    if rng.random() < 0.3:
        return mutated(content, rng)
    values = tomllib.loads(content.decode())
    for _ in range(rng.integers(1, 4)):
        # The settings of other recipes are right names in wrong places.
        if rng.random() < 0.2:
            other = tomllib.loads(seeds[rng.integers(0, len(seeds))].decode())
            name = list(other)[rng.integers(0, len(other))]
            values[name] = other[name]
        change_json(values, rng)
    try:
        text = "\n".join(f"{_key(k)} = {_text(v)}" for k, v in values.items())
    except RecursionError:
        return _DEEP[0]
    return text.encode("utf-8", "replace")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: Any) -> str:
    """Return a plain value as TOML in one line; it has no null."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(str(k))} = {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, float):
        # nan and inf are numbers of TOML too.
        return repr(value) if value == value else "nan"
    return json.dumps("" if value is None else value).replace("\\ud", "?")


def use_recipe(content: bytes, rng: np.random.Generator) -> None:
    """Read a recipe, and check all that is checked before work begins."""
    from visionshare.recipes import load_recipe
    from visionshare.recipes.run import TrainingRun
    from visionshare.recipes.training import check_run

    path = Path(tempfile.gettempdir()) / f"attack-{os.getpid()}.toml"
    path.write_bytes(content)
    try:
        recipe = load_recipe(path)
        check_run(TrainingRun(recipe, path.with_suffix(".work"), None, 1))
    finally:
        path.unlink()


def use_entry(content: bytes, rng: np.random.Generator) -> None:
    """Read an entry of a catalog, and look for its files."""
    from visionshare.datasets import dataset_info, load_dataset, verify_dataset

    folder = Path(tempfile.gettempdir()) / f"attack-{os.getpid()}-catalog"
    folder.mkdir(exist_ok=True)
    (folder / "a.toml").write_bytes(content)
    try:
        info = dataset_info("a", folder)
        verify_dataset("a", folder, folder)
        if info.kind != "bundled" or info.name != "fonts":
            load_dataset("a", "train", folder, catalog=folder)
    finally:
        (folder / "a.toml").unlink()
        with suppress(OSError):
            folder.rmdir()


RECIPES = Inputs(recipe_seeds, mutated_toml, use_recipe)
CATALOGS = Inputs(catalog_seeds, mutated_toml, use_entry)
