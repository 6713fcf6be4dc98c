"""Image files named on a command line."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from visionshare.errors import DataError

__all__ = ["Images", "image_paths"]

Images = Annotated[
    list[str],
    typer.Argument(help='Files, folders, patterns, or "-" for a list on standard input.'),
]


def image_paths(entries: list[str]) -> Iterator[str]:
    """Yield the image files that these entries stand for; folders are searched to the bottom.

    Raises
    ------
    DataError
        If an entry stands for no file.
    """
    from visionshare.datasets.folders import find_images

    for entry in entries:
        if entry == "-":
            yield from (line.strip() for line in sys.stdin if line.strip())
        elif Path(entry).is_dir():
            found = find_images(entry)
            if not found:
                raise DataError(f"{entry}: a folder without images")
            yield from map(str, found)
        elif Path(entry).is_file():
            yield entry
        else:
            matches = sorted(glob.glob(entry, recursive=True))
            if not matches:
                raise DataError(f"{entry}: no such file, folder or pattern")
            yield from matches
