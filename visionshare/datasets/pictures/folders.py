"""Folders of class folders, with folders of training and test pictures where they are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from visionshare.class_labels import in_order, quoted
from visionshare.datasets.folders import (
    file_text,
    is_left_behind,
    is_picture_name,
    iter_images,
    leads_up,
)
from visionshare.datasets.notices import collect_notices, kinds_sentence
from visionshare.datasets.pictures.labeled import TEST, TRAIN, VALIDATION, Content, PictureSet
from visionshare.errors import DataError

__all__ = ["ROLE_WORDS", "folder_pictures", "has_class_folders", "role_of", "roles_of"]

_ROLES = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "validation": ("val", "valid", "validation", "dev"),
}
#: Words that stand for a role, in any case of letters.
ROLE_WORDS = tuple(word for words in _ROLES.values() for word in words)


def role_of(name: str) -> str | None:
    """Return "train", "test" or "validation" where a name stands for it."""
    return next((role for role, names in _ROLES.items() if name.strip().lower() in names), None)


def roles_of(given: list[str | None], name: str) -> np.ndarray | None:
    """Return what each picture is for, from the roles that a source names."""
    named = set(given)
    if not named & {"test", "validation"}:
        return None
    if not named & {"train", None}:
        raise DataError(f"{name}: pictures for {max(map(str, named))}, and none for training")
    number = {"train": TRAIN, None: TRAIN, "test": TEST, "validation": VALIDATION}
    return np.array([number[role] for role in given], np.int64)


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
    parts, ignored = _parts(root)
    paths: list[str] = []
    names: list[str] = []
    given: list[str | None] = []
    empty: list[str] = []
    with collect_notices() as notices:
        for role, homes in parts:
            for home in homes:
                found = list(iter_images(home))
                paths += found
                names += [file_text(home.name)] * len(found)
                given += [role] * len(found)
                empty += [] if found else [str(home)]
    others = kinds_sentence(notices.kinds.values())
    if not paths:
        raise DataError(
            f"{root}: no folders with images; it needs one for each class, such as "
            f"{root.name or root}/cat and {root.name or root}/dog, or a table labels.csv of "
            "columns 'path' and 'label'" + (f"; {others}" if others else "")
        )
    roles = roles_of(given, str(root))
    notes: tuple[str, ...] = ()
    if empty:
        notes += (f"{len(empty)} folders have no images: {', '.join(empty[:5])}",)
    if ignored:
        some = ", ".join(home.name for home in ignored[:5])
        notes += (f"{len(ignored)} folders beside those of train and test are not used: {some}",)
    notes += (others,) if others else ()
    classes, labels = classes_of(names, given, str(root))
    return PictureSet(
        file_text(root.resolve().name), classes, labels, roles, lambda: _contents(paths), notes
    )


def has_class_folders(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds folders of pictures of two classes or more."""
    try:
        return len(folder_pictures(folder).classes) > 1
    except DataError:
        return False


def _parts(root: Path) -> tuple[list[tuple[str | None, list[Path]]], list[Path]]:
    """Return the class folders of each part, and folders of pictures that belong to none."""
    homes = _folders(root)
    roles = {home: role for home in homes if (role := role_of(home.name)) and _is_part(home)}
    others = [home for home in homes if home not in roles]
    parts: list[tuple[str | None, list[Path]]] = [
        (role, _folders(home)) for home, role in roles.items()
    ]
    if "train" in roles.values():
        return parts, [home for home in others if _has_pictures(home)]
    return [(None, others), *parts], []


def _is_part(home: Path) -> bool:
    """Return whether a folder with the name of a part holds folders of pictures."""
    if not any(map(_has_pictures, _folders(home))):
        return False
    with os.scandir(home) as entries:
        loose = sorted(e.name for e in entries if _is_picture(e.name) and os.path.isfile(e.path))
    if loose:
        raise DataError(
            f"{home}: folders of pictures beside pictures ({loose[0]}): "
            f"neither classes to {role_of(home.name)} nor a class {home.name!r}"
        )
    return True


def _is_picture(name: str) -> bool:
    return is_picture_name(name) and not is_left_behind(name)


def _has_pictures(home: Path) -> bool:
    return next(iter_images(home), None) is not None


def classes_of(
    names: list[str], given: list[str | None], source: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the classes of the pictures, in order, and the number of each picture's."""
    trained = {name for name, role in zip(names, given, strict=True) if role in ("train", None)}
    classes = in_order(names)
    if unknown := [name for name in classes if name not in trained]:
        raise DataError(f"{source}: classes without a training picture: {quoted(unknown)}")
    index = {name: i for i, name in enumerate(classes)}
    return classes, np.array([index[name] for name in names], np.int64)


def _contents(paths: list[str]) -> Iterator[Content]:
    return (Content(path, path) for path in paths)


def _folders(folder: Path) -> list[Path]:
    found = (path for path in folder.iterdir() if path.is_dir() and not leads_up(path))
    return sorted(path for path in found if not is_left_behind(path.name))
