"""A classifier as one C header and one source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visionshare.classifier import CompactClassifier, EarlyExit, ExitStage
from visionshare.codegen.c_text import check_identifier
from visionshare.codegen.c_writer import QUANTIZATIONS, Writer
from visionshare.codegen.quantization import quantize_rows
from visionshare.codegen.templates import render_file
from visionshare.errors import InputError

__all__ = ["PIXELS", "CProgram", "batch_source", "c_program"]

# C types of a pixel, by the name of the dtype of images.
PIXELS = {"uint8": "uint8_t", "float32": "float"}
# Offsets in it are of type int.
_LARGEST_RAM = 2**28
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class CProgram:
    """The C of a classifier.

    Parameters
    ----------
    name : str
        First part of all names.
    pixel : {"uint8", "float32"}
        Type of an image's values.
    quantize : {"none", "int8", "int16"}
        What its tables hold.
    ram : int
        Bytes of the memory that a call writes to, beside the stack.
    files : dict of str to str
        Header, source, example and Makefile, by file name.
    """

    name: str
    pixel: str
    quantize: str
    ram: int
    files: dict[str, str]


def c_program(
    classifier: CompactClassifier,
    name: str = "classifier",
    pixel: str | None = None,
    quantize: str = "none",
    probabilities: bool = False,
    early_exit: bool = False,
) -> CProgram:
    """Return the C of a classifier: C99, without allocation or input and output.

    Parameters
    ----------
    classifier : CompactClassifier
    name : str, default "classifier"
        First part of all names.
    pixel : {"uint8", "float32"}, optional
        Type of an image's values; bytes when omitted, floats where examples are vectors.
    quantize : {"none", "int8", "int16"}, default "none"
        What the tables hold.
    probabilities : bool, default False
        Whether there is a function of probabilities, which needs the mathematical library.
    early_exit : bool, default False
        Whether images stop where the classifier's rule says, see
        :class:`visionshare.classifier.EarlyExit`; otherwise all features are computed.

    Raises
    ------
    InputError
        If an argument is out of range or the classifier cannot be written in C.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> sorted(c_program(model).files)
    ['Makefile', 'classifier.c', 'classifier.h', 'example.c']
    """
    check_identifier("name", name)
    pixel = pixel or ("float32" if len(classifier.image_shape) == 1 else "uint8")
    for argument, value, known in (("pixel", pixel, PIXELS), ("quantize", quantize, QUANTIZATIONS)):
        if value not in known:
            raise InputError(argument, value, " or ".join(map(repr, known)))
    if classifier.n_features == 0:
        raise InputError("classifier", "no features", "one feature or more")
    writer = Writer(name, PIXELS[pixel], QUANTIZATIONS[quantize])
    stages = tuple(_stages(classifier, writer, early_exit))
    ram = max(stage.ram for stage in stages) + 4 * classifier.n_features
    if ram > _LARGEST_RAM:
        raise InputError("classifier", f"{ram} bytes to work in", f"at most {_LARGEST_RAM}")
    values = {
        **_description(classifier),
        "prefix": name,
        "macro": name.upper(),
        "from_bytes": writer.bytes,
        "quantize": quantize,
        "quantized": writer.bits is not None,
        "weight_type": "float" if writer.bits is None else f"int{writer.bits}_t",
        "ram": ram,
        "stages": stages,
        "units": writer.units,
        "probabilities": probabilities,
        "math": probabilities or any(unit.math for unit in writer.units),
    }
    templates = {
        f"{name}.h": "header.h.j2", f"{name}.c": "program.c.j2",
        "example.c": "example.c.j2", "Makefile": "Makefile.j2",
    }  # fmt: skip
    files = {file: render_file(_FOLDER / made_of, values) for file, made_of in templates.items()}
    return CProgram(name, pixel, quantize, ram, files)


def batch_source(name: str) -> str:
    """Return the C of a program of this name with a loop over images, for a shared library.

    Examples
    --------
    >>> "void model_batch(" in batch_source("model")
    True
    """
    return render_file(_FOLDER / "batch.c.j2", {"prefix": name, "macro": name.upper()})


class _Stage(NamedTuple):
    """A stage in the templates: its unit, its features and its weights, one row per feature.

    Images whose best score is ahead by the margin stop at it; of the last stage it is None.
    """

    unit: str
    ram: int
    begin: int
    end: int
    weights: np.ndarray
    weight_scales: np.ndarray | None
    intercept: np.ndarray
    margin: float | None


def _stages(classifier: CompactClassifier, writer: Writer, early_exit: bool) -> Iterable[_Stage]:
    """Yield the stages, from the first to the last; add the units that they call."""
    every_feature = ExitStage(classifier.family, classifier.weights, classifier.intercept, None)
    begin = 0
    for stage in EarlyExit(classifier).stages if early_exit else (every_feature,):
        unit = writer.add(stage.family)
        weights, scales = stage.weights.T, None
        if writer.bits is not None:
            weights, row_scales = quantize_rows(weights, writer.bits)
            scales = row_scales.astype(np.float32)
        end = len(weights)
        ram = writer.ram(unit)
        yield _Stage(unit.name, ram, begin, end, weights, scales, stage.intercept, stage.margin)
        begin = end


def _description(classifier: CompactClassifier) -> dict[str, Any]:
    """Return what the templates say of a classifier."""
    from visionshare import __version__

    shape = classifier.image_shape
    height, width, channels = {1: (1, *shape, 1), 2: (*shape, 1), 3: shape}[len(shape)]
    preprocessing = classifier.preprocessing
    return {
        "version": __version__,
        "family": type(classifier.family).name,
        "n_features": classifier.n_features,
        "classes": [str(c) for c in classifier.classes_.tolist()],
        "inverse_temperature": 1 / classifier.temperature,
        "height": height,
        "width": width,
        "channels": channels,
        # How pictures become images; vectors do not come from pictures.
        "preparation": (preprocessing.describe(classifier.picture_mode) if len(shape) > 1 else []),
        "polarity_unchanged": preprocessing.polarity == "as_is",
    }
