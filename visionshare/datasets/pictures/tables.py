"""Tables of pictures: CSV or JSON lines of paths, labels and, where there is one, the split."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from visionshare.datasets.folders import is_left_behind, is_picture_name
from visionshare.datasets.pictures.folders import ROLE_WORDS, classes_of, role_of, roles_of
from visionshare.datasets.pictures.labeled import Content, PictureSet
from visionshare.errors import DataError

__all__ = ["TABLES", "find_table", "table_pictures"]

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
# Names of columns, the first that there is counts.
_PATHS = ("path", "file", "file_name", "filename", "image", "img", "image_path", "filepath")
_LABELS = ("label", "class", "category", "target", "labels", "class_name", "y")
_SPLITS = ("split", "set", "subset", "fold", "partition")
_NAMES = ("labels", "metadata", "annotations", "index", "images")
_MAX_BYTES, _MAX_ROWS, _MAX_LINE = 1 << 30, 20_000_000, 1 << 16
# Rows of one picture, and rows that are empty.
_MAX_SAME, _MAX_EMPTY = 1000, 100_000


def find_table(folder: Path) -> Path | None:
    """Return the table of a folder: ``labels.csv``, ``metadata.jsonl``, or the only one."""
    found = (path for path in folder.iterdir() if path.suffix.lower() in TABLES)
    tables = sorted(path for path in found if not is_left_behind(path.name))
    named = [path for path in tables if path.stem.lower() in _NAMES]
    return named[0] if named else tables[0] if len(tables) == 1 else None


def table_pictures(path: str | os.PathLike[str]) -> PictureSet:
    """Return the pictures of a table of paths and labels."""
    # A CSV file (commas, semicolons or tabs) has the columns ``path`` and ``label``, or others of
    # common names, and may have ``split``; without a header, its first two columns are path and
    # label. In JSON lines these are keys. Paths are relative to the table, and lead to files in
    # its folder or below.
    table = Path(path)
    try:
        if table.stat().st_size > _MAX_BYTES:
            raise DataError(f"{table}: larger than {_MAX_BYTES} bytes")
        rows = _checked_rows(table)
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{table}: {error.strerror or error}") from None
    except (ValueError, csv.Error, RecursionError) as error:
        line = " ".join(str(error).split())[:200]
        raise DataError(f"{table}: cannot be read as a table ({line})") from None
    if not rows:
        raise DataError(f"{table}: no rows")
    paths = [path for path, _, _ in rows]
    names = [name for _, name, _ in rows]
    given = [role for _, _, role in rows]
    roles = roles_of(given, str(table))
    classes, labels = classes_of(names, given, str(table))

    def contents() -> Iterator[Content]:
        return (Content(path, path) for path in paths)

    return PictureSet(table.stem, classes, labels, roles, contents)


def _checked_rows(table: Path) -> list[tuple[str, str, str | None]]:
    """Return path, label and role of each row, each of which is checked once it is read."""
    root = table.resolve().parent
    found: list[tuple[str, str, str | None]] = []
    # Files that were looked for by the texts that name them, and in how many rows each is.
    known: dict[str, str] = {}
    counts: dict[str, int] = {}
    for number, name, label, split in _rows(table):
        if (path := known.get(name)) is None:
            path = known[name] = _inside(root, name, f"{table}: row {number}")
        counts[path] = counts.get(path, 0) + 1
        if counts[path] > _MAX_SAME:
            raise DataError(f"{table}: row {number}: {name!r} is in more than {_MAX_SAME} rows")
        found.append((path, label, _role(table, number, split)))
    return found


def _role(table: Path, number: int, split: str) -> str | None:
    """Return the role that a row names; None where it names none."""
    role = role_of(split) if split else None
    if split and role is None:
        accepted = ", ".join(ROLE_WORDS)
        raise DataError(f"{table}: row {number}: split {split!r}; it may be {accepted}, or empty")
    return role


def _rows(table: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield number, path, label and split (or nothing) of each row."""
    read = _json_rows if table.suffix.lower() in (".jsonl", ".ndjson") else _csv_rows
    for n, (number, path, label, split) in enumerate(read(table)):
        if n >= _MAX_ROWS:
            raise DataError(f"{table}: more than {_MAX_ROWS} rows")
        if not path or not label:
            raise DataError(f"{table}: row {number}: no {'path' if not path else 'label'}")
        yield number, path, label, split


def _csv_rows(table: Path) -> Iterator[tuple[int, str, str, str]]:
    with open(table, encoding="utf-8-sig", newline="") as file:
        first = file.readline(_MAX_LINE)
        file.seek(0)
        separator = max(",;\t", key=first.count)
        lines = _Lines(file)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        columns: tuple[int, int, int | None] | None = None
        n_empty = 0
        for row in reader:
            lines.renew()
            if not any(row):
                n_empty += 1
                if n_empty > _MAX_EMPTY:
                    raise DataError(f"{table}: more than {_MAX_EMPTY} empty rows")
                continue
            if columns is None:
                columns, is_header = _columns(table, row)
                if is_header:
                    continue
            path, label, split = columns
            if max(path, label, split or 0) >= len(row):
                raise DataError(f"{table}: row {reader.line_num}: {len(row)} columns, too few")
            cells = [row[i].strip() if i is not None else "" for i in (path, label, split)]
            yield reader.line_num, cells[0], cells[1], cells[2]


class _Lines:
    """The lines of a file, of which one row takes so many characters at most."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._left = file, _MAX_LINE

    def renew(self) -> None:
        """Begin with the next row."""
        self._left = _MAX_LINE

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(_MAX_LINE + 1):
            self._left -= len(line)
            if self._left < 0:
                raise ValueError(f"a row of more than {_MAX_LINE} characters")
            yield line


def _columns(table: Path, row: list[str]) -> tuple[tuple[int, int, int | None], bool]:
    """Return which columns are path, label and split, and whether the row is a header."""
    names = [cell.strip().lower() for cell in row]
    path, label, split = (_first(names, known) for known in (_PATHS, _LABELS, _SPLITS))
    if path is not None and label is not None:
        third = None if split is None else names.index(split)
        return (names.index(path), names.index(label), third), True
    if len(row) >= 2 and is_picture_name(row[0].strip()):
        return (0, 1, None), False
    raise DataError(f"{table}: no columns 'path' and 'label'; it has {', '.join(row[:10])}")


def _json_rows(table: Path) -> Iterator[tuple[int, str, str, str]]:
    with open(table, encoding="utf-8-sig") as file:
        number = n_empty = 0
        while line := file.readline(_MAX_LINE):
            number += 1
            if not line.strip():
                n_empty += 1
                if n_empty > _MAX_EMPTY:
                    raise DataError(f"{table}: more than {_MAX_EMPTY} empty rows")
                continue
            row = json.loads(line)
            if not isinstance(row, dict):
                raise DataError(f"{table}: row {number}: no object of path and label")
            keys = {str(key).lower(): value for key, value in row.items()}
            found = [_first(list(keys), known) for known in (_PATHS, _LABELS, _SPLITS)]
            if None in found[:2]:
                has = ", ".join(list(keys)[:10])
                raise DataError(f"{table}: row {number}: no keys 'path' and 'label'; it has {has}")
            cells = [_text(table, number, keys, name) for name in found]
            yield number, cells[0], cells[1], cells[2]


def _first(names: list[str], known: tuple[str, ...]) -> str | None:
    return next((name for name in known if name in names), None)


def _text(table: Path, number: int, row: dict[str, Any], name: str | None) -> str:
    """Return the text of a key, or nothing where there is none; a split may be null."""
    value = "" if name is None else row[name]
    if value is None and name in _SPLITS:
        return ""
    if not isinstance(value, (str, int)):
        given = json.dumps(value)[:40]
        raise DataError(f"{table}: row {number}: {name} {given}, not text or a whole number")
    return str(value).strip()


def _inside(root: Path, name: str, where: str) -> str:
    """Return the path of a file in a folder or below; nothing else is read for a table."""
    path = os.path.normpath(os.path.join(root, name))
    # A link in the folder was laid there by its owner; a path that leaves it may be a stranger's.
    if not Path(path).is_relative_to(root):
        raise DataError(f"{where}: {name!r} is outside of the table's folder")
    try:
        is_file = os.path.isfile(path)
    except ValueError:
        is_file = False
    if not is_file:
        raise DataError(f"{where}: no file {name!r}")
    return path
