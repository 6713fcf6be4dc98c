"""Our classifiers, exported anew from their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.edge.contender import Contender
from visionshare import CompactClassifier, load
from visionshare.datasets import load_images
from visionshare.errors import VisionshareError
from visionshare.export import c_program
from visionshare.export.targets import device_sources

__all__ = ["our_contenders"]

_TABLES = ("int8", "int4", "none")


def our_contenders(path: Path, set_name: str, data: Path) -> list[Contender]:
    """Return a classifier in tables of 8 bits and, where it has products of pairs, of 4.

    Weights are rounded on training images.
    """
    model = load(path)
    images, labels = _images(model, set_name, data, "test")
    examples, _ = _images(model, set_name, data, "train")
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
        name = f"{path.parent.name}, {quantize if quantize != 'none' else 'few bits'}"
        made.append(Contender(name, sources, int(model.macs), images, labels))
    return made


def _images(
    model: CompactClassifier, set_name: str, data: Path, split: str
) -> tuple[np.ndarray, np.ndarray]:
    size, mode = model.picture_size, model.picture_mode
    loaded = load_images(set_name, split, data, size, mode, model.preprocessing)
    position = {str(name): i for i, name in enumerate(model.classes_)}
    of_class = np.array([position.get(name, -1) for name in loaded.classes])
    return loaded.images, of_class[loaded.labels]
