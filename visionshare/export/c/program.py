"""A classifier as one C header and one source."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from visionshare.answers import LabelRule, ValueRule
from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier, EarlyExit, ExitStage
from visionshare.codegen.c_text import check_identifier
from visionshare.codegen.c_writer import QUANTIZATIONS, Writer, raster_values
from visionshare.codegen.quantization import quantize_rows
from visionshare.codegen.templates import render_file
from visionshare.errors import InputError
from visionshare.export.c.unknown import known_source, sums_of
from visionshare.generators.inputs import raster_shape

# C types of a pixel, by the name of the dtype of images.
PIXELS = {"uint8": "uint8_t", "float32": "float"}
# Offsets in it are of type int.
_LARGEST_RAM = 2**28
_FOLDER = Path(__file__).parent
# Name and version of the format of tables as data.
_BLOB_MARK = b"VSBLOB\1\0"


@dataclass(frozen=True)
class CProgram:
    """The C of a classifier.

    Parameters
    ----------
    name : str
        First part of all names.
    pixel : {"uint8", "float32"}
        Type of an image's values.
    quantize : {"none", "int4", "int8", "int16"}
        What its tables hold.
    ram : int
        Bytes of the memory that a call writes to, beside the stack.
    files : dict of str to str
        Header, source, example and Makefile, by file name.
    score : {"float32", "int32"}, default "float32"
        Type of a score.
    score_scale : float, default 1.0
        What a score of 1 stands for: whole numbers times this are about the classifier's scores.
    blob : bytes, optional
        The tables, of a program that has none of its own.
    reference : callable, optional
        Of a program in whole numbers: the same scores, from images, in Python.
    early_exit : bool, default False
        Whether images stop where the classifier's rule says.

    Examples
    --------
    >>> from visionshare import CompactClassifier, Pixels
    >>> from visionshare.export import c_program
    >>> family = Pixels().fit(np.zeros((1, 2, 2))).take([0, 3])
    >>> model = CompactClassifier(family, np.eye(2), np.zeros(2), np.array(["a", "b"]))
    >>> c_program(model, name="digits").files["digits.h"].count("digits_classify") > 0
    True
    """

    name: str
    pixel: str
    quantize: str
    ram: int
    files: dict[str, str]
    score: str = "float32"
    score_scale: float = 1.0
    reference: Callable[[np.ndarray], np.ndarray] | None = None
    early_exit: bool = False
    blob: bytes | None = None


def c_program(
    classifier: CompactClassifier,
    name: str = "classifier",
    pixel: str | None = None,
    quantize: str = "none",
    probabilities: bool = False,
    early_exit: bool = False,
    examples: np.ndarray | None = None,
    vectors: bool = False,
    blob: bool = False,
) -> CProgram:
    """Return the C of a classifier: C99, without allocation or input and output.

    Parameters
    ----------
    classifier : CompactClassifier
    name : str, default "classifier"
        First part of all names.
    pixel : {"uint8", "float32"}, optional
        Type of an image's values; bytes when omitted, floats where examples are vectors.
    quantize : {"none", "int4", "int8", "int16"}, default "none"
        What the tables hold. With int8 and int4, patches and products of their pairs compute in
        whole numbers from the bytes of an image to its scores; int4 stores the weights of such
        products in 4 bits, all else in 8.
    probabilities : bool, default False
        Whether there is a function of probabilities, which needs the mathematical library.
    early_exit : bool, default False
        Whether images stop where the classifier's rule says, see
        :class:`visionshare.classifier.EarlyExit`; otherwise all features are computed.
    examples : ndarray of shape (n, *image_shape), uint8, optional
        Some of the training images, on which weights of products are rounded so that scores
        change little; a few thousand do. int4 cannot do without.
    vectors : bool, default False
        Whether the program is for a PC: layers of whole numbers then compute in vectors of bytes,
        from larger tables, with the same bits.
    blob : bool, default False
        Whether tables are data that ``NAME_open`` checks, and that may be replaced by those of a
        classifier of the same layers and bits. For networks of integers.

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
    if pixel not in PIXELS:
        raise InputError("pixel", pixel, " or ".join(map(repr, PIXELS)))
    if quantize not in QUANTIZATIONS:
        raise InputError("quantize", quantize, " or ".join(map(repr, QUANTIZATIONS)))
    if classifier.n_features == 0:
        raise InputError("classifier", "no features", "one feature or more")
    if quantize == "int4" or examples is not None:
        _check_examples(classifier, examples)
    if early_exit and _away(classifier):
        accepted = "False: the rule for unknown pictures needs all features"
        raise InputError("early_exit", True, accepted)

    def new_writer() -> Writer:
        bits = QUANTIZATIONS[quantize]
        return Writer(name, PIXELS[pixel], bits, examples=examples, vectors=vectors, blob=blob)

    whole_tables = classifier.family.in_whole_numbers or quantize in ("int4", "int8")
    if pixel == "uint8" and whole_tables and not early_exit:
        program = _whole_program(classifier, new_writer(), quantize, probabilities)
        if program is not None and (not blob or program.blob is not None):
            return program
    if blob:
        raise InputError("blob", True, "False unless the classifier is a network of integers")
    if quantize == "int4":
        accepted = "'int8': only patches of bytes and products of their pairs, without early exit"
        raise InputError("quantize", quantize, accepted)
    writer = new_writer()
    stages = list(_stages(classifier, writer, early_exit))
    ram = max(stage.ram for stage in stages) + 4 * (classifier.n_features + _held(classifier))
    values = {
        "score_scale": None,
        "in_place": False,
        "blob": None,
        "weight_type": "float" if writer.bits is None else f"int{writer.bits}_t",
        "stages": stages,
        "math": probabilities or any(unit.math for unit in writer.units),
        "with_vectors": any(f"{name}_vector" in unit.source for unit in writer.units),
    }
    files = _files("program.c.j2", classifier, writer, quantize, probabilities, ram, values)
    return CProgram(name, pixel, quantize, ram, files, early_exit=early_exit)


def _whole_program(
    classifier: CompactClassifier, writer: Writer, quantize: str, probabilities: bool
) -> CProgram | None:
    """Return a program that computes in whole numbers; None where the family has floats."""
    weights, intercept, _ = sums_of(classifier)
    scores = classifier.family.to_whole_scores(writer, weights, intercept)
    if scores is None:
        return None
    ram = writer.ram(scores.unit) + (4 if writer.data else 0) + 4 * _held(classifier)
    blob = _blob(writer, scores.unit.source) if writer.data else None
    values = {
        "score_scale": scores.scale,
        "unit": scores.unit.name,
        "in_place": scores.unit.in_place,
        "blob": blob,
        "stages": (),
        "math": probabilities,
    }
    files = _files("whole.c.j2", classifier, writer, quantize, probabilities, ram, values)

    def reference(images: np.ndarray) -> np.ndarray:
        sums = scores.evaluate(np.asarray(images))[:, : len(classifier.classes)]
        return sums.astype(np.int32)

    found = CProgram(writer.prefix, "uint8", quantize, ram, files, "int32", scores.scale, reference)
    return replace(found, blob=blob)


def _away(classifier: CompactClassifier) -> int:
    """Return how many sums of features the rule for unknown pictures needs beside the scores."""
    return len(classifier.sum_weights) - len(classifier.classes)


def _held(classifier: CompactClassifier) -> int:
    """Return how many numbers are kept for the rule from the scores to its call."""
    away = _away(classifier)
    return away and len(classifier.classes) + away


def _blob(writer: Writer, source: str) -> bytes:
    """Return the tables behind a header: format, digest of the layers, size and CRC-32."""
    data = bytes(writer.data)
    digest = hashlib.sha256(source.encode()).digest()[:8]
    return _BLOB_MARK + digest + struct.pack("<II", len(data), zlib.crc32(data)) + data


def _check_examples(classifier: CompactClassifier, examples: np.ndarray | None) -> None:
    shape = ", ".join(map(str, classifier.image_shape))
    accepted = f"training images of shape (n, {shape}), uint8; int4 needs them"
    if examples is None:
        raise InputError("examples", None, accepted)
    fits = examples.dtype == np.uint8 and examples.shape[1:] == classifier.image_shape
    if not fits or len(examples) == 0:
        raise InputError("examples", (examples.shape, str(examples.dtype)), accepted)


def _files(
    source: str,
    classifier: CompactClassifier,
    writer: Writer,
    quantize: str,
    probabilities: bool,
    ram: int,
    values: dict[str, Any],
) -> dict[str, str]:
    """Return header, source, example and Makefile; of templates with these values."""
    from visionshare import __version__

    if ram > _LARGEST_RAM:
        raise InputError("classifier", f"{ram} bytes to work in", f"at most {_LARGEST_RAM}")
    shape = classifier.image_shape
    preprocessing = classifier.preprocessing
    name = writer.prefix
    values = {
        "version": __version__,
        "prefix": name,
        "macro": name.upper(),
        "from_bytes": writer.bytes,
        "family": type(classifier.family).name,
        "n_features": classifier.n_features,
        "classes": list(class_names(classifier.classes_)),
        "inverse_temperature": 1 / classifier.temperature,
        **raster_values(raster_shape(shape)),
        # How pictures become images; vectors do not come from pictures.
        "preparation": preprocessing.describe(classifier.picture_mode) if len(shape) > 1 else [],
        "polarity_unchanged": preprocessing.polarity == "as_is",
        "quantize": quantize,
        "quantized": writer.bits is not None or values["score_scale"] is not None,
        "ram": ram,
        "units": writer.units,
        "probabilities": probabilities,
        **values,
    }
    rule = classifier.unknown
    values["away"] = _away(classifier)
    values["known"] = known_source(classifier, values, values["score_scale"] or 1.0)
    values |= _of_answer(classifier, values["score_scale"])
    values["answer"] = render_file(_FOLDER / "answer.c.j2", values)
    values["reject"] = None if rule is None else rule.reject
    values["math"] = values["math"] or rule is not None or values["has_value"]
    templates = {
        f"{name}.h": "header.h.j2",
        f"{name}.c": source,
        "example.c": "example.c.j2",
        "Makefile": "Makefile.j2",
    }
    if values["blob"] is not None:
        templates[f"{name}_blob.c"] = "blob.c.j2"
    return {file: render_file(_FOLDER / template, values) for file, template in templates.items()}


def _of_answer(classifier: CompactClassifier, score_scale: float | None) -> dict[str, Any]:
    """Return the tables of a value's levels, or the scores from which on labels are there."""
    rule = classifier.answer
    made: dict[str, Any] = {"has_value": isinstance(rule, ValueRule), "cutoffs": None}
    if isinstance(rule, ValueRule):
        turns = rule.classes * (2 * np.pi / (rule.period or 1))
        tables = {"levels": rule.classes, "sines": np.sin(turns), "cosines": np.cos(turns)}
        made |= {name: table.astype(np.float32) for name, table in tables.items()}
        made["period"] = rule.period
    elif isinstance(rule, LabelRule):
        least = logit(np.array(rule.thresholds)) * classifier.temperature
        if score_scale is None:
            largest = np.finfo(np.float32).max
            made["cutoffs"] = np.clip(least, -largest, largest).astype(np.float32)
        else:
            limits = np.iinfo(np.int32)
            least = np.clip(np.ceil(least / score_scale), limits.min, limits.max)
            made["cutoffs"] = least.astype(np.int32)
    return made


def batch_source(name: str) -> str:
    """Return the C of a program of this name with a loop over images, for a shared library."""
    return render_file(_FOLDER / "batch.c.j2", {"prefix": name, "macro": name.upper()})


class _Stage(NamedTuple):
    """A stage in the templates: its unit, its features and its weights, one row per feature."""

    unit: str
    ram: int
    begin: int
    end: int
    weights: np.ndarray
    weight_scales: np.ndarray | None
    intercept: np.ndarray
    margin: float | None


def _stages(classifier: CompactClassifier, writer: Writer, early_exit: bool) -> Iterator[_Stage]:
    """Yield the stages, from the first to the last; add the units that they call."""
    weights, intercept, _ = sums_of(classifier)
    every_feature = ExitStage(classifier.family, weights, intercept, None)
    begin = 0
    for stage in EarlyExit(classifier).stages if early_exit else (every_feature,):
        unit = writer.add(stage.family)
        weights = stage.weights.T
        scales = None
        if writer.bits is not None:
            weights, row_scales = quantize_rows(weights, writer.bits)
            scales = row_scales.astype(np.float32)
        ram = writer.ram(unit)
        end = len(weights)
        yield _Stage(unit.name, ram, begin, end, weights, scales, stage.intercept, stage.margin)
        begin = end
