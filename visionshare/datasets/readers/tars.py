"""Tars of pictures: samples as WebDataset writes them, or class folders."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.containers.formats import extensions
from visionshare.datasets.folders import is_left_behind, is_picture_name
from visionshare.datasets.notices import collect_notices, note_kind
from visionshare.datasets.readers.bounds import BoundedFile, unpacked
from visionshare.datasets.readers.labels import classes_of, role_of, roles_of
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.errors import DataError

_SUFFIXES = (".tar", ".tar.gz", ".tgz")
_LABELS = ("label", "cls", "class", "category", "target", "class_name")
# Bytes of a picture, of a label, of all that a tar unpacks to, and of the headers of a member.
_MAX_PICTURE = 256 << 20
_MAX_LABEL = 1 << 16
_MAX_BYTES = 256 << 30
_MAX_HEADER = 1 << 16
# The number of members, and of headers of all of them.
_MAX_MEMBERS = 10_000_000
_MAX_HEADERS = 100
# Parts of a path that are no names.
_NO_NAMES = ("", ".", "..")


class _Place(NamedTuple):
    """A file in a tar: its name, where its bytes begin, and their number."""

    name: str
    start: int
    size: int


def is_tar(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is named as tars are."""
    return os.fspath(path).lower().endswith(_SUFFIXES)


def find_tars(folder: Path) -> list[Path]:
    """Return the tars of a folder, sorted: the shards of one set of pictures."""
    found = (path for path in folder.iterdir() if path.is_file() and is_tar(path))
    return sorted(path for path in found if not is_left_behind(path.name))


def has_tars(path: Path) -> bool:
    """Return whether a path is a tar, or a folder of some."""
    return bool(find_tars(path)) if path.is_dir() else is_tar(path)


def tar_pictures(path: Path) -> PictureSet:
    """Return the pictures of a tar, or of a folder of tars."""
    # A sample is a picture and what has its name up to the first dot: ``0001.jpg`` with
    # ``0001.cls`` (a class, as a number or text) or ``0001.json`` (of a key ``label``, ``cls`` or
    # ``class``). A picture without them has its folder's name for class. Shards ``train-…`` and
    # ``test-…`` (or ``val-…``), or folders of these names, say what trains and what tests.
    tars = find_tars(path) if path.is_dir() else [path]
    name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    names: list[str] = []
    given: list[str | None] = []
    with collect_notices() as notices:
        indexes = [_index(tar) for tar in tars]
    for tar, (pictures, labels) in zip(tars, indexes, strict=True):
        first_word = re.split(r"[._-]", tar.name)[0]
        for member, *_ in pictures:
            beside = labels.get(_key(member)) if labels else None
            folders = [part for part in member.split("/")[:-1] if part not in ("", ".")]
            label = beside or (folders.pop() if folders else None)
            if label is None or (not beside and role_of(label) is not None):
                raise DataError(f"{tar}: {member}: no class (no .cls or .json beside it)")
            names.append(label)
            # The folder around a picture is its class, unless the class is said beside it.
            words = (*folders, first_word)
            given.append(next(filter(None, map(role_of, words)), None))
    if not names:
        raise DataError(f"{path}: no pictures")
    classes, numbers = classes_of(names, given, str(path))

    def contents() -> Iterator[Content]:
        # Headers need not be read again.
        for tar, (pictures, _) in zip(tars, indexes, strict=True):
            with file_errors(tar, "a tar"), unpacked(tar, _MAX_BYTES) as (file, _):
                for place in pictures:
                    yield Content(f"{tar}: {place.name}", _content(tar, file, place, _MAX_PICTURE))

    notes = tuple(notices.sentences())
    return PictureSet(name, classes, numbers, roles_of(given, str(path)), contents, notes)


def tar_contents(path: str | os.PathLike[str]) -> Iterator[Content]:
    """Yield the pictures of a tar in order, each read when its turn comes."""
    for place, read in _members(path):
        if is_picture_name(place.name):
            yield Content(f"{path}: {place.name}", read(_MAX_PICTURE))


def _index(path: Path) -> tuple[list[_Place], dict[str, str]]:
    """Return the places of the pictures in order, and the labels by the keys of samples."""
    pictures: list[_Place] = []
    labels: dict[str, str] = {}
    for place, read in _members(path):
        member = place.name
        suffix = os.path.splitext(member)[1].lower()
        if suffix in extensions():
            pictures.append(place)
        elif suffix == ".cls":
            labels[_key(member)] = read(_MAX_LABEL).decode("utf-8").strip()
        elif suffix == ".json" and (label := _json_label(read(_MAX_LABEL))):
            labels.setdefault(_key(member), label)
        else:
            note_kind(f"{path}: {member}")
    return pictures, labels


def _members(path: str | os.PathLike[str]) -> Iterator[tuple[_Place, Callable[[int], bytes]]]:
    """Yield the files of a tar: where each is, and a function that reads so many bytes at most."""
    with file_errors(path, "a tar"), unpacked(path, _MAX_BYTES) as (file, most):
        headers = BoundedFile(file, _MAX_HEADER, only_forward=True)
        tar = tarfile.TarFile(fileobj=headers)  # type: ignore[arg-type]
        for number, member in enumerate(tar):
            # All members so far would fill the memory.
            tar.members = []  # type: ignore[attr-defined]
            # What headers say of all members is copied to each.
            is_long = len(tar.pax_headers) > _MAX_HEADERS
            if number >= _MAX_MEMBERS or member.offset_data + member.size > most or is_long:
                raise DataError(f"{path}: too many files, too large, or too much about all files")
            headers.renew()
            parts = set(member.name.split("/")).difference(_NO_NAMES)
            is_left = any(map(is_left_behind, parts))
            if not member.isreg() or member.issparse() or is_left:
                continue

            place = _Place(member.name, member.offset_data, member.size)
            yield place, partial(_content, path, file, place)


def _content(path: str | os.PathLike[str], file: Any, place: _Place, largest: int) -> bytes:
    """Return the bytes of a member."""
    if place.size > largest:
        raise DataError(f"{path}: {place.name}: larger than {largest} bytes")
    file.seek(place.start)
    content = bytes(file.read(place.size))
    if len(content) < place.size:
        raise DataError(f"{path}: {place.name}: the file ends before")
    return content


def _key(member: str) -> str:
    """Return what the files of one sample share: the name up to the first dot."""
    path = PurePosixPath(member)
    return str(path.parent / path.name.split(".")[0])


def _json_label(content: bytes) -> str | None:
    """Return the label in a sample's JSON, if there is one."""
    values = json.loads(content)
    if not isinstance(values, dict):
        return None
    label = next((values[name] for name in _LABELS if name in values), None)
    return str(label).strip() if isinstance(label, (str, int)) else None
