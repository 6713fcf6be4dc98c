"""Our classifiers, exported anew from their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.edge.contender import Contender
from visionshare import CompactClassifier, load
from visionshare.datasets import load_images
from visionshare.errors import VisionshareError
from visionshare.export import c_program
from visionshare.export.targets import device_sources

__all__ = ["classifier_images", "classifier_name", "our_contenders"]

_TABLES = ("int8", "int4", "none")


def our_contenders(path: Path, set_name: str, data: Path) -> list[Contender]:
    """Return a classifier in tables of 8 bits and, where it has products of pairs, of 4.

    Weights are rounded on training images. What training took is read from ``metrics.json`` beside
    the classifier.
    """
    model = load(path)
    images, labels = classifier_images(model, set_name, data, "test")
    examples, _ = classifier_images(model, set_name, data, "train")
    taken = _metrics(path)
    seconds = sum(taken["seconds"].values()) if taken else None
    made: list[Contender] = []
    for quantize in _TABLES:
        try:
            program = c_program(model, quantize=quantize, examples=examples)
        except VisionshareError:
            # Some families have no tables of 4 bits; classifiers of few bits have theirs already.
            continue
        if quantize == "none" and program.score != "int32":
            continue
        sources = device_sources(model, program)
        source = f"{program.name}.c"
        if made and made[-1].sources.files[source] == sources.files[source]:
            # Without products of pairs there is nothing to store in 4 bits.
            continue
        name = f"{classifier_name(path)}, {quantize if quantize != 'none' else 'few bits'}"
        made.append(
            Contender(
                name, sources, int(model.macs), images, labels, seconds, taken.get("peak_memory")
            )
        )
    return made


def classifier_name(path: Path) -> str:
    """Return the pipeline that a classifier is of, or the name of its folder."""
    name: str = _metrics(path).get("pipeline", path.parent.name)
    return name


def classifier_images(
    model: CompactClassifier, set_name: str, data: Path, split: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return images of a data set as a classifier takes them, and places of their classes."""
    size, mode = model.picture_size, model.picture_mode
    loaded = load_images(set_name, split, data, size, mode, model.preprocessing)
    position = {str(name): i for i, name in enumerate(model.classes_)}
    of_class = np.array([position.get(name, -1) for name in loaded.classes])
    return loaded.images, of_class[loaded.labels]


def _metrics(path: Path) -> dict[str, Any]:
    file = path.parent / "metrics.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found
