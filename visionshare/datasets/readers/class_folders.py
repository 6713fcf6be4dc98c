"""Folders of class folders, with folders of training and test pictures where they are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from visionshare.datasets.folders import (
    file_text,
    is_left_behind,
    is_picture_name,
    iter_images,
    leads_up,
)
from visionshare.datasets.notices import collect_notices, kinds_sentence
from visionshare.datasets.readers.labels import classes_of, role_of, roles_of
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError

_SHOWN = 5


def folder_pictures(folder: str | os.PathLike[str]) -> PictureSet:
    """Return the pictures of a folder that holds a folder for each class."""
    # A folder ``train`` (or ``training``) with ``test`` (``testing``) or ``val`` (``valid``,
    # ``validation``, ``dev``) beside it holds the classes of each part; without ``train`` the
    # other folders are the classes that train. One of these names that holds pictures itself, and
    # no folders of them, is a class. Files and folders whose names begin with a dot are no
    # pictures.
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder")
    homes, ignored = _class_folders(root)
    paths: list[str] = []
    names: list[str] = []
    given: list[str | None] = []
    empty: list[str] = []
    with collect_notices() as notices:
        for home, role in homes:
            found = list(iter_images(home))
            paths += found
            names += [file_text(home.name)] * len(found)
            given += [role] * len(found)
            if not found:
                empty.append(str(home))
    others = kinds_sentence(notices.kinds.values())
    if not paths:
        name = root.name or root
        raise DataError(
            f"{root}: no folders with images; it needs one for each class, such as {name}/cat "
            f"and {name}/dog, or a table labels.csv of columns 'path' and 'label'"
            + (f"; {others}" if others else "")
        )
    notes = []
    if empty:
        notes.append(f"{len(empty)} folders have no images: {', '.join(empty[:_SHOWN])}")
    if ignored:
        some = ", ".join(ignored[:_SHOWN])
        notes.append(f"{len(ignored)} folders beside train and test are not used: {some}")
    if others:
        notes.append(others)
    classes, labels = classes_of(names, given, str(root))

    def contents() -> Iterator[Content]:
        return (Content(path, path) for path in paths)

    roles = roles_of(given, str(root))
    name = file_text(root.resolve().name)
    return PictureSet(name, classes, labels, roles, contents, tuple(notes))


def has_class_folders(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds folders of pictures of two classes or more."""
    try:
        return len(folder_pictures(folder).classes) > 1
    except DataError:
        return False


def _class_folders(root: Path) -> tuple[list[tuple[Path, str | None]], list[str]]:
    """Return the folders of classes and their roles, and the names of folders of no part."""
    folders = _folders(root)
    parts: dict[Path, str | None] = {
        home: role for home in folders if (role := role_of(home.name)) and _is_part(home)
    }
    others = [home for home in folders if home not in parts]
    homes = [(home, role) for part, role in parts.items() for home in _folders(part)]
    if "train" in parts.values():
        return homes, [home.name for home in others if _has_pictures(home)]
    return [*((home, None) for home in others), *homes], []


def _is_part(home: Path) -> bool:
    """Return whether a folder with the name of a part holds folders of pictures."""
    if not any(map(_has_pictures, _folders(home))):
        return False
    for path in sorted(home.iterdir()):
        if is_picture_name(path.name) and not is_left_behind(path.name) and path.is_file():
            raise DataError(
                f"{home}: folders of pictures beside pictures ({path.name}): "
                f"neither classes to {role_of(home.name)} nor a class {home.name!r}"
            )
    return True


def _has_pictures(home: Path) -> bool:
    return next(iter_images(home), None) is not None


def _folders(folder: Path) -> list[Path]:
    found = (path for path in folder.iterdir() if path.is_dir() and not leads_up(path))
    return sorted(path for path in found if not is_left_behind(path.name))
