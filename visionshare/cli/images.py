"""Images named on a command line: files, and labeled ones of a data set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.class_labels import class_names, quoted
from visionshare.errors import DataError, InputError
from visionshare.errors.names import nothing_named

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier
    from visionshare.datasets import ImageSet

__all__ = ["Images", "PicturesAndTars", "files_of", "image_paths", "labeled_images"]

Images = Annotated[
    list[str],
    typer.Argument(help='Files, folders, patterns, or "-" for a list on standard input.'),
]
PicturesAndTars = Annotated[
    list[str],
    typer.Argument(
        help='Pictures or tars of them: files, folders, URLs (s3://bucket/*.tar), patterns, "-".'
    ),
]


def image_paths(entries: list[str], tars: bool = False) -> Iterator[str]:
    """Return the image files that entries stand for; folders are searched recursively."""
    # With ``tars`` a folder without images may have tars, and entries may be URLs. All entries
    # are checked before the first file is yielded; folders are read lazily.
    from visionshare.datasets.folders import iter_images
    from visionshare.datasets.notices import collect_notices, kinds_sentence
    from visionshare.datasets.pictures.tars import find_tars
    from visionshare.files.storage import is_url, matching_files

    sources: list[Iterable[str]] = []
    for entry in entries:
        if entry == "-":
            sources.append(line.rstrip("\r\n") for line in sys.stdin if line.strip())
        elif os.path.isdir(entry):
            images = iter_images(entry)
            with collect_notices() as seen:
                first = next(images, None)
            shards = find_tars(Path(entry)) if tars and first is None else []
            if first is None and not shards:
                others = kinds_sentence(seen.kinds.values())
                raise DataError(f"{entry}: a folder without images{others and '; '}{others}")
            sources.append(map(str, shards) if first is None else chain([first], images))
        elif os.path.isfile(entry):
            sources.append([entry])
        else:
            if is_url(entry) and not tars:
                raise InputError("images", entry, "files of this machine")
            matches = matching_files(entry)
            if not matches:
                raise DataError(nothing_named(entry, "file, folder or pattern"))
            sources.append(matches)
    return chain.from_iterable(sources)


def files_of(source: str) -> Iterator[str]:
    """Yield a file, or the images of a folder; nothing of a name of the catalog."""
    from visionshare.datasets.folders import iter_images

    if os.path.isdir(source):
        yield from iter_images(source)
    elif os.path.isfile(source):
        yield source


def labeled_images(
    model: CompactClassifier, source: str, data: Path | None, split: str
) -> ImageSet:
    """Return images as a classifier takes them, with its classes."""
    from dataclasses import replace

    import numpy as np

    from visionshare.datasets import load_images
    from visionshare.datasets.intake import as_rasters

    size, mode = model.picture_size, model.picture_mode
    loaded = load_images(source, split, data, size, mode, model.preprocessing)
    _check_shape(model, loaded.images.shape[1:], source)
    classes = class_names(model.classes_)
    position = {name: i for i, name in enumerate(classes)}
    unknown = sorted({loaded.classes[c] for c in np.unique(loaded.labels)} - set(position))
    if unknown:
        known = quoted(classes)
        raise DataError(
            f"{source}: classes {quoted(unknown)} are unknown to the classifier of {known}"
        )
    of_class = np.array([position.get(name, -1) for name in loaded.classes])
    labels = of_class[loaded.labels]
    return replace(loaded, images=as_rasters(loaded.images), labels=labels, classes=classes)


def _check_shape(model: CompactClassifier, shape: tuple[int, ...], source: str) -> None:
    # One value a pixel is the same with an axis of its own.
    given, taken = (
        sides[:2] if sides[2:] == (1,) else sides for sides in (shape, model.image_shape)
    )
    if given != taken:
        found, accepted = ("×".join(map(str, sides)) for sides in (given, taken))
        raise DataError(
            f"{source}: its images are {found}, the classifier takes {accepted}; only pictures of "
            "files are resized: give a folder of them, or train on images like these"
        )
