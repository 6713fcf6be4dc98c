"""Options that several commands have, and that mean the same in each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.errors import ClassifierFileError, DataError, InputError
from visionshare.errors.names import nothing_named
from visionshare.files.bundled import bundled_classifiers

if TYPE_CHECKING:
    from visionshare.distributed.mapping import ClusterMap

_FILE = "classifier.safetensors"
_LARGEST_SIDE = 4096


def classifier_file(path: Path) -> Path:
    """Return the classifier file of a path: a file, the folder of a run, or a bundled one."""
    if not os.path.exists(path):
        ours = bundled_classifiers()
        if str(path) in ours:
            return ours[str(path)]
        runs = [*map(str, Path("out").glob("*/")), *ours]
        raise ClassifierFileError(nothing_named(path, "classifier file or folder of a run", runs))
    if not path.is_dir():
        return path
    file = path / _FILE
    if not file.is_file():
        raise ClassifierFileError(f"{path}: a folder without {_FILE}; a finished run has one")
    return file


def _existing_picture(path: Path) -> Path:
    if not os.path.exists(path):
        raise DataError(nothing_named(path, "picture"))
    return path


def _number_of_threads(context: typer.Context, jobs: int) -> int:
    from visionshare.machine.resources import resolve_jobs

    return jobs if context.resilient_parsing else resolve_jobs(jobs, "--jobs")


Classifier = Annotated[
    Path,
    typer.Argument(
        help="A classifier file, the folder of a run, or a name of `visionshare models`.",
        callback=classifier_file,
    ),
]
Picture = Annotated[Path, typer.Argument(help="A picture file.", callback=_existing_picture)]
Color = Annotated[
    bool | None,
    typer.Option(
        "--color/--gray",
        help="Use color or gray images. Default: color if the pictures have color.",
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", help="Folder to search first for data sets."),
]
ImageSize = Annotated[
    str | None,
    typer.Option(
        "--size", metavar="SIZE", help="Size of the images: 32, or 32x48 (height x width)."
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        help="Number of threads or processes. -1 means one per core.",
        callback=_number_of_threads,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Memory = Annotated[
    str,
    typer.Option("--memory", metavar="SIZE", help='Memory for images and features: "1GiB".'),
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a setting, such as learner.alpha=1e-3."
    ),
]
SkipBroken = Annotated[
    bool, typer.Option("--skip-broken", help="Skip pictures that cannot be read.")
]
SkipPreprocessing = Annotated[
    bool,
    typer.Option(
        "--skip-preprocessing", help="Only resize images, as they are already preprocessed."
    ),
]
Split = Annotated[str, typer.Option(metavar="NAME", help="Split of the data set: train or test.")]


@dataclass(frozen=True)
class Cluster:
    """Cluster."""

    workers: Annotated[
        int | None, typer.Option(help="Run N processes as a local Dask cluster.")
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="URL", help='Use an existing Dask cluster: "tcp://host:8786".'),
    ] = None

    @contextmanager
    def mapper(self, threads: int) -> Iterator[ClusterMap | None]:
        """Yield what maps work over the cluster; None where none is asked for."""
        from visionshare.distributed import cluster_client
        from visionshare.distributed.mapping import ClusterMap

        with cluster_client(self.workers, self.scheduler, threads) as client:
            yield None if client is None else ClusterMap(client)


def image_size(text: str | None) -> tuple[int, int] | None:
    """Return the height and width of ``--size``."""
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    known = len(sides) <= 2 and all(
        side.isascii() and side.isdecimal() and 1 <= int(side) <= _LARGEST_SIDE for side in sides
    )
    if not known:
        accepted = f"32, or 32x48 (height x width), each from 1 to {_LARGEST_SIDE}"
        raise InputError("--size", text, accepted)
    return int(sides[0]), int(sides[-1])
