"""Options that several commands have, and that mean the same in each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from visionshare.errors import ClassifierFileError, DataError, InputError
from visionshare.errors.names import nothing_named

__all__ = [
    "Classifier", "Color", "DataFolder", "ImageSize", "Jobs", "Json", "Picture", "Scheduler",
    "SkipPreprocessing", "Workers", "classifier_file", "image_size",
]  # fmt: skip

_FILE = "classifier.safetensors"


def classifier_file(path: Path) -> Path:
    """Return the classifier file of a path: a file, or the folder of a run."""
    if not os.path.exists(path):
        runs = map(str, Path("out").glob("*/"))
        raise ClassifierFileError(nothing_named(path, "classifier file or folder of a run", runs))
    if not path.is_dir():
        return path
    file = path / _FILE
    if not file.is_file():
        raise ClassifierFileError(f"{path}: a folder without {_FILE}; a finished run has one")
    return file


def _existing(path: Path) -> Path:
    """Return the path of a file."""
    if not os.path.exists(path):
        raise DataError(nothing_named(path, "picture"))
    return path


Classifier = Annotated[
    Path,
    typer.Argument(help="A classifier file, or the folder of a run.", callback=classifier_file),
]
Picture = Annotated[Path, typer.Argument(help="A picture file.", callback=_existing)]
Color = Annotated[
    bool | None,
    typer.Option("--color/--gray", help="Images in color, or gray; default: as the pictures are."),
]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder with data sets, searched first.")
]
ImageSize = Annotated[
    str | None,
    typer.Option(
        "--size", help="Size of the images, 32 or 32x48 (height x width); default: the median."
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", help="Number of workers (threads or processes); -1: one per core."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
SkipPreprocessing = Annotated[
    bool,
    typer.Option("--skip-preprocessing", help="Images are preprocessed already: only resize them."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="Run on so many processes: a Dask cluster of this machine."),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help='Run on a running Dask cluster: "tcp://host:8786".'),
]

_LARGEST = 4096


def image_size(text: str | None) -> tuple[int, int] | None:
    """Return the height and width of ``--size``."""
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    known = len(sides) <= 2 and all(
        side.isascii() and side.isdecimal() and 1 <= int(side) <= _LARGEST for side in sides
    )
    if not known:
        accepted = f"32, or 32x48 (height x width), each from 1 to {_LARGEST}"
        raise InputError("--size", text, accepted)
    return int(sides[0]), int(sides[-1])
