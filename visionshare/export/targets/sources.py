"""What is compiled for a core: C with one function that classifies an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from visionshare.classifier import CompactClassifier
from visionshare.export.c.program import CProgram


@dataclass(frozen=True)
class DeviceSources:
    """C in which ``int NAME_classify(image, work, scores)`` returns the label's index.

    ``work`` is a ``struct NAME_work`` of ``NAME.h``: the caller's memory that a call writes to.

    Parameters
    ----------
    name : str
    files : mapping of str to str
        Sources and headers by file name; what ends in ".c" is compiled.
    pixel : {"uint8", "float32"}
        Type of an image's values.
    n_pixels, n_classes : int
    score : {"float32", "int32"}
        Type of a score.

    Examples
    --------
    >>> DeviceSources("none", {"none.c": ""}, "uint8", 64, 10, "int32").image_bytes
    64
    """

    name: str
    files: Mapping[str, str]
    pixel: str
    n_pixels: int
    n_classes: int
    score: str

    @property
    def image_bytes(self) -> int:
        """Bytes of an image."""
        return self.n_pixels * (1 if self.pixel == "uint8" else 4)


def device_sources(classifier: CompactClassifier, program: CProgram) -> DeviceSources:
    """Return the C of a classifier without what runs on a PC alone.

    Examples
    --------
    >>> import numpy as np
    >>> from visionshare import CompactClassifier, Pixels
    >>> from visionshare.export import c_program
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> sorted(device_sources(model, c_program(model)).files)
    ['classifier.c', 'classifier.h']
    """
    return DeviceSources(
        program.name,
        {name: program.files[name] for name in (f"{program.name}.c", f"{program.name}.h")},
        program.pixel,
        math.prod(classifier.image_shape),
        len(classifier.classes_),
        program.score,
    )
