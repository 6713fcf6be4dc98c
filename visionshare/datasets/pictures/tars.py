"""Tars of pictures: samples as WebDataset writes them, or class folders."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from visionshare.datasets.bounds import BoundedFile, Members, unpacked_limit
from visionshare.datasets.folders import is_left_behind, is_picture_name
from visionshare.datasets.notices import collect_notices, note_kind
from visionshare.datasets.pictures.folders import classes_of, role_of, roles_of
from visionshare.datasets.pictures.labeled import Content, PictureSet
from visionshare.errors import DataError
from visionshare.files.storage import open_file

__all__ = ["find_tars", "is_tar", "tar_contents", "tar_pictures"]

_SUFFIXES = (".tar", ".tar.gz", ".tgz")
_LABELS = ("label", "cls", "class", "category", "target", "class_name")
# Bytes of a picture, of a label, of all that a tar unpacks to, and of the headers of a member.
_MAX_MEMBER, _MAX_LABEL, _MAX_BYTES, _MAX_HEADER = 256 << 20, 1 << 16, 256 << 30, 1 << 16
# And the number of members, and of headers of all of them.
_MAX_MEMBERS, _MAX_HEADERS = 10_000_000, 100
_BROKEN = (
    tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError, RecursionError,
)  # fmt: skip


def is_tar(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is named as tars are."""
    return os.fspath(path).lower().endswith(_SUFFIXES)


def find_tars(folder: Path) -> list[Path]:
    """Return the tars of a folder, sorted: the shards of one set of pictures."""
    found = (path for path in folder.iterdir() if path.is_file() and is_tar(path))
    return sorted(path for path in found if not is_left_behind(path.name))


def tar_pictures(paths: Sequence[str | os.PathLike[str]], name: str) -> PictureSet:
    """Return the pictures of tars."""
    # A sample is a picture and what has its name up to the first dot: ``0001.jpg`` with
    # ``0001.cls`` (a class, as a number or text) or ``0001.json`` (of a key ``label``, ``cls`` or
    # ``class``). A picture without them has its folder's name for class. Shards ``train-…`` and
    # ``test-…`` (or ``val-…``), or folders of these names, say what trains and what tests.
    tars = [Path(path) for path in paths]
    names: list[str] = []
    given: list[str | None] = []
    with collect_notices() as notices:
        indexes = [_index(path) for path in tars]
    for path, (pictures, labels) in zip(tars, indexes, strict=True):
        for member in pictures:
            beside = labels.get(_key(member))
            label = beside or _folder_of(member)
            if label is None:
                raise DataError(f"{path}: {member}: no class (no .cls or .json beside it)")
            names.append(label)
            # The folder around a picture is its class, unless the class is said beside it.
            folders = PurePosixPath(member).parts[: -1 if beside else -2]
            given.append(_role(path, folders))
    if not names:
        raise DataError(f"{tars[0]}: no pictures")
    roles = roles_of(given, str(tars[0]))
    classes, numbers = classes_of(names, given, str(tars[0]))
    notes = tuple(notices.sentences())
    return PictureSet(name, classes, numbers, roles, lambda: _contents(tars), notes)


def _index(path: Path) -> tuple[list[str], dict[str, str]]:
    """Return the names of the pictures in order, and the labels by the keys of samples."""
    pictures: list[str] = []
    labels: dict[str, str] = {}
    for member, read in _members(path):
        suffix = os.path.splitext(member)[1].lower()
        if is_picture_name(member):
            pictures.append(member)
        elif suffix == ".cls":
            labels[_key(member)] = _text(path, member, read(_MAX_LABEL))
        elif suffix == ".json" and (label := _json_label(path, member, read(_MAX_LABEL))):
            labels.setdefault(_key(member), label)
        else:
            note_kind(f"{path}: {member}")
    return pictures, labels


def _contents(tars: list[Path]) -> Iterator[Content]:
    for path in tars:
        yield from tar_contents(path)


def tar_contents(path: str | os.PathLike[str]) -> Iterator[Content]:
    """Yield the pictures of a tar in order, each read when its turn comes."""
    for member, read in _members(path):
        if is_picture_name(member):
            yield Content(f"{path}: {member}", read(_MAX_MEMBER))


def _members(path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    """Yield the files of a tar: the name, and a function that reads so many bytes at most."""
    with _opened(path) as (tar, headers, file, most):
        for number, member in enumerate(tar):
            # All members so far would fill the memory.
            tar.members = []  # type: ignore[attr-defined]
            # What headers say of all members is copied to each.
            is_long = len(tar.pax_headers) > _MAX_HEADERS
            if number >= _MAX_MEMBERS or member.offset_data + member.size > most or is_long:
                raise DataError(f"{path}: too many files, too large, or too much about all files")
            headers.renew()
            parts = member.name.split("/")
            is_left = any(is_left_behind(part) for part in parts if part not in ("", ".", ".."))
            if not member.isreg() or member.issparse() or is_left:
                continue

            def read(largest: int, member: tarfile.TarInfo = member) -> bytes:
                if member.size > largest:
                    raise DataError(f"{path}: {member.name}: larger than {largest} bytes")
                file.seek(member.offset_data)
                content = bytes(file.read(member.size))
                if len(content) < member.size:
                    raise DataError(f"{path}: {member.name}: the file ends before")
                return content

            yield member.name, read


@contextmanager
def _opened(
    path: str | os.PathLike[str],
) -> Iterator[tuple[tarfile.TarFile, BoundedFile, Any, int]]:
    """Open a tar: itself, what its headers are read from, its bytes, and their most number."""
    # What goes wrong inside of the block is a DataError.
    try:
        with open_file(path) as file:
            packed = file.read(2) == b"\x1f\x8b"
            most = _MAX_BYTES
            if packed:
                most = unpacked_limit(file.seek(0, os.SEEK_END), most)
            file.seek(0)
            plain: Any = gzip.GzipFile(fileobj=Members(file)) if packed else file
            headers = BoundedFile(plain, _MAX_HEADER)
            with tarfile.open(fileobj=headers, mode="r:") as tar:  # type: ignore[call-overload]
                yield tar, headers, plain, most
    except DataError:
        raise
    except _BROKEN as error:
        line = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: cannot be read as a tar ({line})") from None


def _key(member: str) -> str:
    """Return what the files of one sample share: the name up to the first dot."""
    path = PurePosixPath(member)
    return str(path.parent / path.name.split(".")[0])


def _folder_of(member: str) -> str | None:
    parent = PurePosixPath(member).parent.name
    return parent if parent and role_of(parent) is None else None


def _role(path: Path, folders: Sequence[str]) -> str | None:
    """Return what a picture is for, from its folders or the name of its shard."""
    named = map(role_of, folders)
    first = path.name.replace(".", "-").replace("_", "-").split("-")[0]
    return next((role for role in named if role), None) or role_of(first)


def _text(path: Path, member: str, content: bytes) -> str:
    try:
        return content.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise DataError(f"{path}: {member}: no text") from None


def _json_label(path: Path, member: str, content: bytes) -> str | None:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        raise DataError(f"{path}: {member}: invalid JSON") from None
    if not isinstance(values, dict):
        return None
    label = next((values[name] for name in _LABELS if name in values), None)
    return str(label).strip() if isinstance(label, (str, int)) else None
