"""What an extraction keeps beside its columns: the path of each row, and what each column is."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

from visionshare.errors import StoreError
from visionshare.files.durable import write_text

LISTING = "images.txt"
LABELS = "labels.txt"
_DESCRIPTIONS = "features.csv"


def listing_line(text: str) -> str:
    """Return a path's line: a JSON text where the path would not be one line of UTF-8."""
    name = os.fsencode(text).decode("utf-8", "surrogateescape")
    plain = name.isprintable() and not name.startswith('"')
    return f"{name if plain else json.dumps(name)}\n"


def read_lines(file: Path) -> list[str] | None:
    """Return the texts that :func:`listing_line` wrote; None where there is no such file."""
    try:
        lines = file.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) if line.startswith('"') else line for line in lines]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        raise StoreError(f"{file}: damaged; extract the features again") from None


def write_descriptions(folder: Path, names: Sequence[str], descriptions: Sequence[str]) -> None:
    """Write the table of features: a name and a description for each column."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["name", "description"])
    writer.writerows(zip(names, descriptions, strict=True))
    write_text(folder / _DESCRIPTIONS, table.getvalue())


def read_descriptions(folder: Path) -> list[tuple[str, str]] | None:
    """Return the name and the description of each column; None where there is no table."""
    file = folder / _DESCRIPTIONS
    try:
        rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, csv.Error):
        raise StoreError(f"{file}: damaged; extract the features again") from None
    if not rows or rows[0] != ["name", "description"] or any(len(row) != 2 for row in rows):
        raise StoreError(f"{file}: not a table of features; extract the features again")
    return [(name, description) for name, description in rows[1:]]
