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

__all__ = ["Images", "image_paths"]

Images = Annotated[
    list[str],
    typer.Argument(help='Files, folders, patterns, or "-" for a list on standard input.'),
]


def image_paths(entries: list[str]) -> Iterator[str]:
    """Return the image files that entries stand for; folders are searched recursively.

    All entries are checked before the first file is yielded; folders are read lazily.

    Raises
    ------
    DataError
        If an entry stands for no file.
    """
    from visionshare.datasets.folders import iter_images

    sources: list[Iterable[str]] = []
    for entry in entries:
        if entry == "-":
            sources.append(line.rstrip("\r\n") for line in sys.stdin if line.strip())
        elif os.path.isdir(entry):
            images = iter_images(entry)
            first = next(images, None)
            if first is None:
                raise DataError(f"{entry}: a folder without images")
            sources.append(chain([first], images))
        elif os.path.isfile(entry):
            sources.append([entry])
        else:
            matches = sorted(glob.glob(entry, recursive=True))
            if not matches:
                raise DataError(f"{entry}: no such file, folder or pattern")
            sources.append(matches)
    return chain.from_iterable(sources)
