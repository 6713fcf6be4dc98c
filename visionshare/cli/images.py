"""Image files named on a command line."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated

import typer

from visionshare.errors import DataError

__all__ = ["Images", "Prepared", "image_paths"]

Images = Annotated[
    list[str],
    typer.Argument(help='Files, folders, patterns, or "-" for a list on standard input.'),
]

Prepared = Annotated[
    bool,
    typer.Option("--prepared", help="They are prepared already: bring them to the size alone."),
]


def image_paths(entries: list[str]) -> Iterator[str]:
    """Return the image files that these entries stand for; folders are searched to the bottom.

    Every entry is looked at before the first file is given; folders are read as files are taken.

    Raises
    ------
    DataError
        If an entry stands for no file.
    """
    from visionshare.datasets.folders import iter_images

    found: list[Iterable[str]] = []
    for entry in entries:
        if entry == "-":
            found.append(line.rstrip("\r\n") for line in sys.stdin if line.strip())
        elif os.path.isdir(entry):
            images = iter_images(entry)
            first = next(images, None)
            if first is None:
                raise DataError(f"{entry}: a folder without images")
            found.append(chain([first], images))
        elif os.path.isfile(entry):
            found.append([entry])
        else:
            matches = sorted(glob.glob(entry, recursive=True))
            if not matches:
                raise DataError(f"{entry}: no such file, folder or pattern")
            found.append(matches)
    return chain.from_iterable(found)
