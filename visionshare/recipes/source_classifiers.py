"""Saved classifiers whose scores are features of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.errors import DataError
from visionshare.errors.names import nothing_named
from visionshare.generators.sources.scores import LinearSource

_SUFFIX = ".safetensors"


def read_sources(entries: Sequence[str | os.PathLike[str]]) -> list[LinearSource]:
    """Return the saved classifiers of these files, and of all below these folders."""
    # A source has the name of its file; files of one name also that of their folder.
    from visionshare.classifier import CompactClassifier

    paths = source_files(entries)
    stems = [path.stem for path in paths]
    sources = []
    for path in paths:
        model = CompactClassifier.load(path)
        unique = stems.count(path.stem) == 1
        name = path.stem if unique else f"{path.resolve().parent.name}/{path.stem}"
        classes = model.classes_.tolist()
        sources.append(LinearSource(model.family, model.weights, model.intercept, name, classes))
    if sources:
        source_shape(sources)
    return sources


def source_files(entries: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the classifier files that entries of :func:`read_sources` stand for."""
    return list(dict.fromkeys(path for entry in entries for path in _files(Path(entry))))


def _files(path: Path) -> list[Path]:
    if os.path.isdir(path):
        files = sorted(p for p in path.rglob(f"*{_SUFFIX}") if p.is_file())
        if not files:
            raise DataError(
                f"{path}: a folder without classifiers (*{_SUFFIX}); `visionshare train` writes one"
            )
        return files
    if not os.path.isfile(path):
        otherwise = "Train one: visionshare train digits --out sources/digits"
        raise DataError(nothing_named(path, "classifier file or folder of them", (), otherwise))
    return [path]


def source_shape(sources: Sequence[LinearSource]) -> tuple[int, ...]:
    """Return the shape of one image that all sources take."""
    shape = tuple(sources[0].family.image_shape_)
    for source in sources[1:]:
        other = tuple(source.family.image_shape_)
        if other != shape:
            raise DataError(
                f"sources: {source.name} takes images of shape {other}, {sources[0].name} of "
                f"{shape}; leave one out, or retrain it on images of the other's size"
            )
    return shape


def sources_family(sources: Sequence[LinearSource], images: np.ndarray) -> Any:
    """Return the unfitted family of the sources' scores."""
    # Once they are known to fit the images.
    from visionshare.generators.sources import SourceClassifiers

    shape = source_shape(sources)
    if images.shape[1:] != shape:
        raise DataError(
            f"sources: {sources[0].name} takes images of shape {shape}, these are "
            f"{images.shape[1:]}; give a folder of images, which are brought to the sources' "
            "size, or sources that were trained on images like these"
        )
    # One of two opposite scores: a ridge penalty would rather pay for both.
    return SourceClassifiers(tuple(sources), opposites=False)
