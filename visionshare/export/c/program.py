"""A classifier as one C header and one source."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from visionshare.classifier import CompactClassifier, EarlyExit, ExitStage
from visionshare.codegen.c_text import check_identifier, number, quoted, render, table
from visionshare.codegen.c_writer import QUANTIZATIONS, Unit, Writer
from visionshare.codegen.quantization import quantized
from visionshare.errors import InputError

__all__ = ["PIXELS", "CProgram", "c_program"]

# Types of a pixel, by the name of what they are read from.
PIXELS = {"uint8": "uint8_t", "float32": "float"}
# Places in it are of type int.
_LARGEST_RAM = 2**28
_HERE = Path(__file__).parent
_RANGES = {
    "uint8": "A byte v stands for the value v / 255.",
    "float32": "A pixel is a float, on the scale of the training images.",
}
_CELL = "\ntypedef float {0}_cell;"
# Whole numbers below 2^24 are exact in floats, which vector units multiply much faster.
_QUANTIZED_CELL = """
#if {1}_ONE_BY_ONE
typedef uint8_t {0}_cell;
#else
typedef float {0}_cell;
#endif"""
_STAGE = """\
    {unit}(image, &work->inner.{unit}, work->features + {begin});
    {prefix}_sum(
        work->features, {end}, {prefix}_weights{stage}, {scales}{prefix}_intercept{stage},
        scores);"""
_STOP = """
    if ({prefix}_ahead(scores) >= {margin}) {{
        return;
    }}"""
_STOPS = """

   An image stops after the first of {0} stages at which its best score is far enough ahead: most
   images need a part of the features. Its scores are those of that stage."""
_PROTOTYPE = """
/* Write the probability of each class, the softmax of the scores over the temperature. */
void {0}_probabilities(
    const float scores[{1}_CLASSES], float probabilities[{1}_CLASSES]);
"""


@dataclass(frozen=True)
class CProgram:
    """The C of a classifier.

    Parameters
    ----------
    name : str
        First part of all names.
    pixel : {"uint8", "float32"}
        What an image's values are.
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
        What an image's values are; bytes when omitted, floats where examples are vectors.
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
    whole = ExitStage(classifier.family, classifier.weights, classifier.intercept, None)
    stages = EarlyExit(classifier).stages if early_exit else (whole,)
    units = [writer.add(stage.family) for stage in stages]
    words = _words(classifier, writer, pixel, quantize) | _stages(stages, units, writer)
    ram = max(map(writer.ram, units)) + 4 * classifier.n_features
    if ram > _LARGEST_RAM:
        raise InputError("classifier", f"{ram} bytes to work in", f"at most {_LARGEST_RAM}")
    words |= {
        "ram": f"{ram} bytes",
        "work": "\n\n".join(held.struct for held in writer.units),
        "units": "\n\n".join(held.source for held in writer.units),
        "probabilities": "",
        "math": "",
        "cold": number(1 / classifier.temperature) if probabilities else "",
    }
    if probabilities or any(held.math for held in writer.units):
        words["math"] = "\n#include <math.h>\n"
    header = {**words, "probabilities": _PROTOTYPE.format(name, name.upper())}
    source = {**words, "probabilities": render(_text("probabilities.c"), words)}
    files = {
        f"{name}.h": render(_text("header.h"), header if probabilities else words),
        f"{name}.c": render(_text("program.c"), source if probabilities else words),
        "example.c": render(_text("example.c"), words),
        "Makefile": render(_text("Makefile"), words),
    }
    return CProgram(name, pixel, quantize, ram, files)


def _text(file: str) -> str:
    return (_HERE / f"{file}.j2").read_text(encoding="ascii")


def _words(
    classifier: CompactClassifier, writer: Writer, pixel: str, quantize: str
) -> dict[str, str | int]:
    """Return what the classifier itself says, and its tables of weights."""
    from visionshare import __version__

    shape = classifier.image_shape
    height, width, channels = {1: (1, *shape, 1), 2: (*shape, 1), 3: shape}[len(shape)]
    name = writer.prefix
    return {
        "version": __version__,
        "prefix": name,
        "macro": name.upper(),
        "kind": "in floats" if writer.bits is None else f"in {quantize}",
        "family": type(classifier.family).name,
        "pixels": _RANGES[pixel],
        "preparation": "" if len(shape) == 1 else _preparation(classifier),
        "pixel": PIXELS[pixel],
        "height": height,
        "width": width,
        "channels": channels,
        "features": classifier.n_features,
        "classes": len(classifier.classes_),
        "names": ",\n".join(f"    {quoted(str(c))}" for c in classifier.classes_.tolist()),
        "cell": (_CELL if writer.bits is None else _QUANTIZED_CELL).format(name, name.upper()),
    }


def _preparation(classifier: CompactClassifier) -> str:
    """Return how pictures become images, as lines of the header's comment."""
    steps = "; ".join(classifier.preprocessing.describe(classifier.picture_mode))
    told = (
        f'A picture becomes such a raster so: it is {steps}. "visionshare prepare" does it, and '
        "--raw writes a file for the example."
    )
    if classifier.preprocessing.polarity == "as_is":
        told += " Ink is light on dark where it was in training."
    lines = textwrap.wrap(told, 92, break_long_words=False)
    return "\n" + "\n".join(f"   {line}" for line in lines) + "\n"


def _stages(
    stages: Sequence[ExitStage], units: Sequence[Unit], writer: Writer
) -> dict[str, str | int]:
    """Return the tables of each stage's weights, and the calls from the first stage to the last."""
    name, bits = writer.prefix, writer.bits
    kind = "float" if bits is None else f"int{bits}_t"
    tables, calls, begin = [], [], 0
    for i, (stage, unit) in enumerate(zip(stages, units, strict=True)):
        by_feature, scales, end = stage.weights.T, "", stage.weights.shape[1]
        if bits is not None:
            by_feature, sizes = quantized(by_feature, bits)
            tables.append(table(f"{name}_weight_scales{i}", sizes.astype(np.float32)))
            scales = f"{name}_weight_scales{i}, "
        tables.append(table(f"{name}_weights{i}", by_feature, kind))
        tables.append(table(f"{name}_intercept{i}", stage.intercept))
        words = {"prefix": name, "stage": i, "unit": unit.name, "begin": begin, "end": end}
        calls.append(_STAGE.format(**words, scales=scales))
        if stage.margin is not None:
            calls[-1] += _STOP.format(prefix=name, margin=number(stage.margin))
        begin = end
    ahead = render(_text("ahead.c"), {"prefix": name, "macro": name.upper()})
    return {
        "tables": "\n\n".join(tables),
        "weight": kind,
        "scales": "" if bits is None else "const float *scales, ",
        "scale": "" if bits is None else " * scales[j]",
        "scale_second": "" if bits is None else " * scales[j + 1]",
        "scale_third": "" if bits is None else " * scales[j + 2]",
        "scale_fourth": "" if bits is None else " * scales[j + 3]",
        "ahead": "\n" + ahead if len(stages) > 1 else "",
        "stages": "\n".join(calls),
        "stops": _STOPS.format(len(stages)) if len(stages) > 1 else "",
        "inner": "\n".join(f"        struct {unit.name}_work {unit.name};" for unit in units),
    }
