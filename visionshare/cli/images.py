"""Images named on a command line: files, and labeled ones of a data set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from visionshare.cli.text import say
from visionshare.errors import DataError, InputError
from visionshare.errors.names import nothing_named

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier
    from visionshare.datasets import ImageSet
    from visionshare.datasets.readers.targets import Target

Images = Annotated[
    list[str],
    typer.Argument(help='Files, folders, patterns, or "-" for a list on standard input.'),
]
PicturesAndTars = Annotated[
    list[str],
    typer.Argument(
        help="Pictures, or tar files of pictures: files, folders, URLs (s3://bucket/*.tar), "
        'patterns, or "-" for a list on standard input.'
    ),
]


def image_paths(entries: list[str], tars: bool = False) -> Iterator[str]:
    """Return the image files that entries stand for; folders are searched recursively."""
    # With ``tars`` a folder without images may have tars, and entries may be URLs. All entries
    # are checked before the first file is yielded; folders are read lazily.
    from visionshare.files.storage import is_url, matching_files

    sources: list[Iterable[str]] = []
    for entry in entries:
        if entry == "-":
            sources.append(line.rstrip("\r\n") for line in sys.stdin if line.strip())
        elif os.path.isdir(entry):
            sources.append(_of_folder(entry, tars))
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


def _of_folder(folder: str, tars: bool) -> Iterable[str]:
    """Return the images of a folder, or its tars where it has no images."""
    from visionshare.datasets.folders import iter_images
    from visionshare.datasets.notices import collect_notices, kinds_sentence
    from visionshare.datasets.readers.tars import find_tars

    images = iter_images(folder)
    with collect_notices() as seen:
        first = next(images, None)
    if first is not None:
        return chain([first], images)
    shards = find_tars(Path(folder)) if tars else []
    if not shards:
        others = kinds_sentence(seen.kinds.values())
        raise DataError(f"{folder}: a folder without images{others and '; '}{others}")
    return map(str, shards)


def files_of(source: str) -> Iterator[str]:
    """Yield a file, or the images of a folder; nothing of a name of the catalog."""
    from visionshare.datasets.folders import iter_images

    if os.path.isdir(source):
        yield from iter_images(source)
    elif os.path.isfile(source):
        yield source


def labeled_images(
    model: CompactClassifier,
    source: str,
    data: Path | None,
    split: str,
    columns: dict[str, str] | None = None,
) -> ImageSet:
    """Return images as a classifier takes them, with its classes, or its values or labels."""
    from dataclasses import replace

    import numpy as np

    from visionshare.class_labels import class_names, quoted
    from visionshare.datasets import load_images
    from visionshare.datasets.intake import as_rasters

    size = model.picture_size
    mode = model.picture_mode
    target = _target_of(model, columns or {})
    loaded = load_images(source, split, data, size, mode, model.preprocessing, target=target)
    _warn_of_values(model, loaded.values, source)
    # 1) Images of the shape that the classifier takes. One value a pixel is the same with an axis.
    shape = _without_gray_axis(loaded.images.shape[1:])
    taken = _without_gray_axis(model.image_shape)
    if shape != taken:
        raise DataError(
            f"{source}: images are {'×'.join(map(str, shape))}, but the classifier takes "
            f"{'×'.join(map(str, taken))}; only picture files are resized: give a folder of them, "
            "or train on images like these"
        )
    if target is not None:
        return replace(loaded, images=as_rasters(loaded.images))
    # 2) Classes that it knows.
    classes = class_names(model.classes_)
    numbers = {name: i for i, name in enumerate(classes)}
    used = {loaded.classes[c] for c in np.unique(loaded.labels)}
    unknown = quoted(sorted(used - set(numbers)))
    if unknown:
        raise DataError(
            f"{source}: classes {unknown} are unknown to the classifier of {quoted(classes)}"
        )
    number_of = np.array([numbers.get(name, -1) for name in loaded.classes])
    labels = number_of[loaded.labels]
    return replace(loaded, images=as_rasters(loaded.images), labels=labels, classes=classes)


def _target_of(model: CompactClassifier, given: dict[str, str]) -> Target | None:
    """Return the columns of a table that are read: given by an option, or known from training."""
    from visionshare.answers import ValueRule
    from visionshare.datasets.readers.targets import target_of_rule

    # 1) the option that fits the classifier
    rule = model.answer
    fitting = None
    if rule is not None:
        fitting = "--target" if isinstance(rule, ValueRule) else "--labels"
    for option, columns in given.items():
        if option != fitting:
            says = "classes" if rule is None else "values" if fitting == "--target" else "labels"
            raise InputError(option, columns, f"no {option}: the classifier says {says}")
    if rule is None or fitting is None:
        return None
    # 2) the columns
    if fitting in given:
        return target_of_rule(rule, [name.strip() for name in given[fitting].split(",")])
    data = (model.metadata.get("recipe") or {}).get("data", {})
    found = [data["target"]] if data.get("target") else data.get("labels")
    if not found:
        raise InputError(fitting, None, "the column of the table that has them")
    return target_of_rule(rule, found)


def _without_gray_axis(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[:2] if shape[2:] == (1,) else shape


def _warn_of_values(
    model: CompactClassifier, values: tuple[float, float] | None, source: str
) -> None:
    """Warn if the values of a file have another range than in training."""
    from visionshare.datasets.pictures.value_ranges import KNOWN_RANGES
    from visionshare.datasets.training_values import TrainingValues

    known = model.values or TrainingValues()
    trained = known.becomes_bytes
    is_usual = values in KNOWN_RANGES and trained in KNOWN_RANGES
    if values is None or values == trained or is_usual:
        return
    (low, high), (least, most) = values, trained
    say(
        f"warning: {source}: values range from {low:g} to {high:g}, in training from {least:g} to "
        f"{most:g}; bring them to the same scale",
        err=True,
    )
