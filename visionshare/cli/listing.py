"""The command that lists names, and the same names for the completion of shells."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

import typer

from visionshare.cli.text import say
from visionshare.errors import InputError
from visionshare.errors.names import choices
from visionshare.files.bundled import bundled, bundled_classifiers

# What has names that users type, and where they are found.
_BUNDLED = {"pipelines": "pipelines", "pools": "features", "datasets": "data"}
_KINDS = (*_BUNDLED, "targets")


def list_names(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"What to list: {', '.join(_KINDS)}.", autocompletion=lambda: list(_KINDS)
        ),
    ] = "pipelines",
) -> None:
    """List pipelines, pools of features, and other names.

    Example: visionshare list

    Example: visionshare list pools
    """
    if kind not in _KINDS:
        raise InputError("KIND", kind, choices(kind, _KINDS))
    if kind == "targets":
        from visionshare.export.targets import TARGETS

        described = {name: target.description for name, target in TARGETS.items()}
    else:
        from visionshare.recipes.reading import read_toml

        key = "title" if kind == "datasets" else "description"
        files = bundled(_BUNDLED[kind])
        described = {name: str(read_toml(files[name]).get(key, "")) for name in sorted(files)}
    width = max(map(len, described))
    for name, text in described.items():
        say(f"{name:{width}}  {text}")


def models() -> None:
    """List the classifiers that come with the library. Commands accept their names in place of
    files.

    Example: visionshare models
    """
    from visionshare import load
    from visionshare.recipes.reading import read_toml

    files = bundled_classifiers()
    recipes = bundled("pipelines")
    width = max(map(len, files))
    for name, file in files.items():
        described = read_toml(recipes[name]).get("description", "") if name in recipes else ""
        facts = f"{len(load(file).classes_):3} classes {file.stat().st_size / 1000:6.1f} kB"
        say(f"{name:{width}}  {facts}  {described}")


def completes(kind: str, paths: bool = True) -> Callable[[str], list[str]]:
    """Return a function that completes names of a kind, and paths where these are taken too."""

    def complete(incomplete: str) -> list[str]:
        found = [name for name in _names(kind) if name.startswith(incomplete)]
        # Where no name fits, the shell completes paths itself, and better.
        return found + _paths(incomplete) if found and paths else found

    return complete


def _names(kind: str) -> list[str]:
    """Return the names of a kind, with few imports: a shell waits for them."""
    if kind == "targets":
        from visionshare.export.targets.table import TARGETS

        return ["c", "onnx", "tflite", *TARGETS]
    if kind == "forms":
        from visionshare.export.packages import PACKAGES

        return ["c", "onnx", "tflite", *PACKAGES]
    return sorted(bundled(_BUNDLED[kind]))


def _paths(incomplete: str) -> list[str]:
    """Return the paths that begin as a text does; folders end with a separator."""
    folder, name = os.path.split(incomplete)
    try:
        with os.scandir(folder or os.curdir) as entries:
            return sorted(
                os.path.join(folder, entry.name) + (os.sep if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(name) and (name or not entry.name.startswith("."))
            )
    except OSError:
        return []
