"""Folders of class folders, with folders of training and test pictures where they are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from visionshare.datasets.folders import file_text, iter_images
from visionshare.datasets.pictures.labeled import TEST, TRAIN, UNUSED, Content, PictureSet
from visionshare.errors import DataError

__all__ = ["folder_pictures", "role_of", "roles_of"]

_ROLES = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "validation": ("val", "valid", "validation", "dev"),
}
# What systems leave in folders, beside all whose names begin with a dot.
_LEFT_BEHIND = ("__MACOSX",)


def role_of(name: str) -> str | None:
    """Return "train", "test" or "validation" where a name stands for it.

    Examples
    --------
    >>> role_of("Val"), role_of("cat") is None
    ('validation', True)
    """
    return next((role for role, names in _ROLES.items() if name.strip().lower() in names), None)


def roles_of(given: list[str | None], name: str) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return what each picture is for, from the roles that a source names, and what to say of it.

    Pictures named for validation test where none is named for testing; with test pictures they
    serve neither.

    Parameters
    ----------
    given : list of str or None
        Of :func:`role_of`, for each picture.
    name : str
        What an error calls the source.

    Returns
    -------
    roles : ndarray of shape (n,), int64, or None
        None where no picture is named for testing.
    notes : tuple of str

    Raises
    ------
    DataError
        If no picture is named for training, though some are for testing.

    Examples
    --------
    >>> roles_of(["train", "validation"], "pets")[0]
    array([0, 1])
    """
    named = set(given)
    tests = "test" if "test" in named else "validation"
    if tests not in named:
        return None, ()
    if not named & {"train", None}:
        raise DataError(f"{name}: pictures for {tests}, and none for training")
    number = {"train": TRAIN, None: TRAIN, tests: TEST}
    roles = np.array([number.get(role, UNUSED) for role in given], np.int64)
    n = int(np.sum(roles == UNUSED))
    return roles, (f"{n} pictures named for validation are not used",) if n else ()


def folder_pictures(folder: str | os.PathLike[str]) -> PictureSet:
    """Return the pictures of a folder that holds a folder for each class.

    A folder ``train`` (or ``training``) with ``test`` (``testing``) or ``val`` (``valid``,
    ``validation``, ``dev``) beside it holds the classes of each part. Files and folders whose
    names begin with a dot are no pictures.

    Parameters
    ----------
    folder : path-like

    Raises
    ------
    DataError
        If there is no such folder, it has no folders with pictures, or a class is tested and
        never trained.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("train/cat", "train/dog", "val/cat"):
    ...         Path(folder, part).mkdir(parents=True)
    ...         Path(folder, part, "1.png").touch()
    ...     pets = folder_pictures(folder)
    >>> pets.classes, pets.labels.tolist(), pets.roles.tolist()
    (('cat', 'dog'), [0, 1, 0], [0, 0, 1])
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder")
    inner = {path.name: role_of(path.name) for path in _folders(root)}
    parts: list[tuple[str | None, Path]] = [(None, root)]
    if "train" in inner.values():
        parts = [(role, root / name) for name, role in inner.items() if role is not None]
    paths: list[str] = []
    names: list[str] = []
    given: list[str | None] = []
    empty: list[str] = []
    for role, part in parts:
        for home in _folders(part):
            found = [path for path in iter_images(home) if _is_visible(path, home)]
            paths += found
            names += [file_text(home.name)] * len(found)
            given += [role] * len(found)
            empty += [] if found else [str(home)]
    if not paths:
        raise DataError(
            f"{root}: no folders with images; it needs one for each class, such as "
            f"{root.name or root}/cat and {root.name or root}/dog, or a table labels.csv of "
            "columns 'path' and 'label'"
        )
    roles, notes = roles_of(given, str(root))
    if empty:
        notes += (f"{len(empty)} folders have no images: {', '.join(empty[:5])}",)
    classes, labels = classes_of(names, given, str(root))
    return PictureSet(
        file_text(root.resolve().name), classes, labels, roles, lambda: _contents(paths), notes
    )


def classes_of(
    names: list[str], given: list[str | None], source: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the classes of the pictures, sorted, and the number of each picture's.

    Raises
    ------
    DataError
        If a class is tested and never trained.
    """
    trained = {name for name, role in zip(names, given, strict=True) if role in ("train", None)}
    classes = tuple(sorted(set(names)))
    if unknown := [name for name in classes if name not in trained]:
        raise DataError(f"{source}: classes without a training picture: {', '.join(unknown[:10])}")
    index = {name: i for i, name in enumerate(classes)}
    return classes, np.array([index[name] for name in names], np.int64)


def _contents(paths: list[str]) -> Iterator[Content]:
    return (Content(path, path) for path in paths)


def _folders(folder: Path) -> list[Path]:
    found = (path for path in folder.iterdir() if path.is_dir())
    return sorted(p for p in found if not p.name.startswith(".") and p.name not in _LEFT_BEHIND)


def _is_visible(path: str, home: Path) -> bool:
    return not any(part.startswith(".") for part in Path(path).relative_to(home).parts)
