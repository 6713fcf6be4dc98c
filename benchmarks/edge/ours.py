"""Our classifiers, exported anew from their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.edge.contender import Contender
from visionshare import CompactClassifier, load
from visionshare.classifier import can_be_quantized, quantize
from visionshare.datasets import load_images
from visionshare.errors import VisionshareError
from visionshare.export import CProgram, c_program
from visionshare.export.targets import device_sources

__all__ = ["classifier_images", "classifier_name", "our_contenders"]

_TABLES = ("int8", "int4", "none")


def our_contenders(path: Path, set_name: str, data: Path) -> list[Contender]:
    """Return a classifier in integers of 8 bits and, where layers or products have them, of 4.

    They are rounded on training images. What training took is read from ``metrics.json`` beside
    the classifier.
    """
    model = load(path)
    images, labels = classifier_images(model, set_name, data, "test")
    examples, _ = classifier_images(model, set_name, data, "train")
    taken = _metrics(path)
    # Others may have had the machine too: what one core would have taken.
    times = taken.get("processor_seconds", taken.get("seconds"))
    seconds = sum(times.values()) if times else None
    made: list[Contender] = []
    for tables in _TABLES:
        try:
            program = _program(model, tables, examples)
        except VisionshareError:
            # Some families have no tables of 4 bits; classifiers of few bits have theirs already.
            continue
        if tables == "none" and program.score != "int32":
            continue
        sources = device_sources(model, program)
        source = f"{program.name}.c"
        if made and made[-1].sources.files[source] == sources.files[source]:
            # Without products of pairs there is nothing to store in 4 bits.
            continue
        name = f"{classifier_name(path)}, {tables if tables != 'none' else 'few bits'}"
        made.append(
            Contender(
                name, sources, int(model.macs), images, labels, seconds, taken.get("peak_memory")
            )
        )
    return made


def _program(model: CompactClassifier, tables: str, examples: np.ndarray) -> CProgram:
    """Return the C of a classifier with tables of so many bits."""
    if tables != "none" and can_be_quantized(model):
        return c_program(quantize(model, examples, int(tables.removeprefix("int"))))
    return c_program(model, quantize=tables, examples=examples)


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
