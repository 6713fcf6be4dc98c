"""Tables of pictures: CSV or JSON lines of paths, labels and, where there is one, the split."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from visionshare.datasets.broken_files import file_errors
from visionshare.datasets.folders import is_left_behind, is_picture_name
from visionshare.datasets.readers.class_folders import folder_pictures
from visionshare.datasets.readers.labels import ROLE_WORDS, TEST, classes_of, role_of, roles_of
from visionshare.datasets.readers.picture_set import Content, PictureSet
from visionshare.datasets.readers.targets import Target
from visionshare.errors import DataError

_JSON_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv", *_JSON_LINES)
# Names of columns, the first that there is counts.
_PATHS = ("path", "file", "file_name", "filename", "image", "img", "image_path", "filepath")
_LABELS = ("label", "class", "category", "target", "labels", "class_name", "y")
_SPLITS = ("split", "set", "subset", "fold", "partition")
# Names of the table in a folder of several.
_NAMES = ("labels", "metadata", "annotations", "index", "images")
_MAX_BYTES = 1 << 30
_MAX_ROWS = 20_000_000
_MAX_LINE = 1 << 16
# Rows of one picture, and rows that are empty.
_MAX_SAME = 1000
_MAX_EMPTY = 100_000


def has_table(path: Path) -> bool:
    """Return whether a path is a table, or a folder of one."""
    return path.suffix.lower() in _TABLES if path.is_file() else _table_in(path) is not None


def table_pictures(path: Path, target: Target | None = None) -> PictureSet:
    """Return the pictures of a table of paths and labels, or of the table in a folder."""
    if path.is_file():
        return _pictures_of(path, target)
    table = _table_in(path)
    assert table is not None
    try:
        found = _pictures_of(table, target)
    except DataError as error:
        if target is not None:
            raise
        # A table of something else lies beside folders of classes.
        try:
            return folder_pictures(path)
        except DataError:
            raise error from None
    return replace(found, notes=(f"classes from {table.name}", *found.notes))


def _table_in(folder: Path) -> Path | None:
    """Return the table of a folder: ``labels.csv``, ``metadata.jsonl``, or the only one."""
    found = (path for path in folder.iterdir() if path.suffix.lower() in _TABLES)
    tables = sorted(path for path in found if not is_left_behind(path.name))
    named = [path for path in tables if path.stem.lower() in _NAMES]
    if named:
        return named[0]
    return tables[0] if len(tables) == 1 else None


def _pictures_of(table: Path, target: Target | None = None) -> PictureSet:
    # A CSV file (commas, semicolons or tabs) has the columns ``path`` and ``label``, or others of
    # common names, and may have ``split``; without a header, its first two columns are path and
    # label. In JSON lines these are keys. Paths are relative to the table, and lead to files in
    # its folder or below.
    root = table.resolve().parent
    read = _json_rows if table.suffix.lower() in _JSON_LINES else _csv_rows
    paths: list[str] = []
    names: list[str] = []
    given: list[str | None] = []
    # Files that were looked for by the texts that name them, and in how many rows each is.
    known: dict[str, str] = {}
    counts: Counter[str] = Counter()
    n_empty = 0
    with file_errors(table, "a table"), open(table, encoding="utf-8-sig", newline="") as file:
        if table.stat().st_size > _MAX_BYTES:
            raise DataError(f"{table}: larger than {_MAX_BYTES} bytes")
        for number, row in read(file):
            where = f"{table}: row {number}"
            if row is None:
                n_empty += 1
                if n_empty > _MAX_EMPTY:
                    raise DataError(f"{table}: more than {_MAX_EMPTY} empty rows")
                continue
            name = _cell(where, row, _PATHS)
            label = _cell(where, row, _LABELS) if target is None else target.cell(where, row)
            split = _cell(where, row, _SPLITS)
            if not name or (target is None and not label):
                has = ", ".join(list(row)[:10])
                raise DataError(f"{where}: no {'label' if name else 'path'}; it has {has}")
            if name not in known:
                known[name] = _inside(root, name, where)
            path = known[name]
            counts[path] += 1
            if counts[path] > _MAX_SAME or len(paths) >= _MAX_ROWS:
                most = f"{_MAX_SAME} rows of a picture, {_MAX_ROWS} in all"
                raise DataError(f"{where}: too many rows; accepted: {most}")
            role = role_of(split)
            if split and role is None:
                accepted = ", ".join(ROLE_WORDS)
                raise DataError(f"{where}: split {split!r}; it may be {accepted}, or empty")
            paths.append(path)
            names.append(label)
            given.append(role)
    if not paths:
        raise DataError(f"{table}: no rows")
    roles = roles_of(given, str(table))
    answers = None
    if target is None:
        classes, labels = classes_of(names, given, str(table))
    else:
        trains = np.ones(len(names), bool) if roles is None else roles != TEST
        answers = target.answers(names, trains, table)
        labels = answers.rule.numbers(answers.truth)
        # Pictures without any label come last.
        n_classes = max(len(answers.rule.classes), int(labels.max()) + 1)
        classes = (*map(str, answers.rule.classes), "")[:n_classes]

    def contents() -> Iterator[Content]:
        return (Content(path, path) for path in paths)

    return PictureSet(table.stem, classes, labels, roles, contents, answers=answers)


def table_column(path: Path, name: str) -> list[str] | None:
    """Return the cells of a column, one for each picture of a table; None if there is none."""
    table = path if path.is_file() else _table_in(path)
    if table is None or not has_table(path):
        return None
    read = _json_rows if table.suffix.lower() in _JSON_LINES else _csv_rows
    with file_errors(table, "a table"), open(table, encoding="utf-8-sig", newline="") as file:
        rows = [row for _, row in read(file) if row is not None]
    if not any(name.lower() in row for row in rows):
        return None
    return [str(row.get(name.lower()) or "") for row in rows]


class _Lines:
    """The lines of a file, of which one row takes so many characters at most."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._left = _MAX_LINE

    def renew(self) -> None:
        """Begin with the next row."""
        self._left = _MAX_LINE

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(_MAX_LINE + 1):
            self._left -= len(line)
            if self._left < 0:
                raise ValueError(f"a row of more than {_MAX_LINE} characters")
            yield line


def _csv_rows(file: TextIO) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield number and cells of each row by the names of their columns; None for an empty row."""
    first = file.readline(_MAX_LINE)
    file.seek(0)
    lines = _Lines(file)
    reader = csv.reader(lines, delimiter=max(",;\t", key=first.count), strict=True)
    names: list[str] = []
    for row in reader:
        lines.renew()
        if not any(row):
            yield reader.line_num, None
        elif names:
            yield reader.line_num, dict(zip(names, row, strict=False))
        elif len(row) >= 2 and is_picture_name(row[0].strip()):
            # There is no header.
            names = ["path", "label"]
            yield reader.line_num, dict(zip(names, row, strict=False))
        else:
            names = [cell.strip().lower() for cell in row]


def _json_rows(file: TextIO) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield number and values of each row by their keys; None for an empty row."""
    lines = _Lines(file)
    for number, line in enumerate(lines, 1):
        lines.renew()
        row = json.loads(line) if line.strip() else None
        if not isinstance(row, (dict, type(None))):
            raise ValueError(f"row {number}: not an object with path and label")
        yield number, row and {str(key).lower(): value for key, value in row.items()}


def _cell(where: str, row: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return the text of the first of these columns that there is, or else nothing."""
    name = next((name for name in names if name in row), None)
    if name is None or (row[name] is None and names == _SPLITS):
        return ""
    value = row[name]
    if not isinstance(value, (str, int)):
        raise DataError(f"{where}: {name} {json.dumps(value)[:40]}, not text or a whole number")
    return str(value).strip()


def _inside(root: Path, name: str, where: str) -> str:
    """Return the path of a file in a folder or below; nothing else is read for a table."""
    path = os.path.normpath(os.path.join(root, name))
    # A link in the folder was laid there by its owner; a path that leaves it may be a stranger's.
    if not Path(path).is_relative_to(root):
        raise DataError(f"{where}: {name!r} is outside of the table's folder")
    if "\0" in name or not os.path.isfile(path):
        raise DataError(f"{where}: no file {name!r}")
    return path
