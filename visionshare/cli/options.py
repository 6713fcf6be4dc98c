"""Options that several commands have, and that mean the same in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Classifier", "DataFolder", "Jobs", "Json", "SkipPreprocessing"]

Classifier = Annotated[Path, typer.Argument(help="A classifier file.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder with data sets, searched first.")
]
Jobs = Annotated[
    int, typer.Option("--jobs", help="Number of workers (threads or processes); -1: one per core.")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
SkipPreprocessing = Annotated[
    bool,
    typer.Option("--skip-preprocessing", help="Images are preprocessed already: only resize them."),
]
