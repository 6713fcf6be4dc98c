"""The command that writes a classifier as C, as a model for ONNX or LiteRT, or as a package."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.forms import Form, sample_images
from visionshare.cli.listing import completes
from visionshare.cli.options import Classifier, Json
from visionshare.cli.text import say
from visionshare.errors import ExportError, InputError
from visionshare.errors.names import choices

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier
    from visionshare.export import CProgram

# Images of the self-test of a package.
_N_SELFTEST = 4


def export(
    classifier: Classifier,
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER|FILE", help="Output folder, or an .onnx or .tflite file."),
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="c, onnx or tflite, or a package with a self-test: arduino, platformio, zephyr, "
            "esp-idf, micropython or npm.",
            autocompletion=completes("forms", paths=False),
        ),
    ] = "c",
    identifier_prefix: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Prefix of C identifiers and file names, and name of the ONNX graph.",
        ),
    ] = "classifier",
    *,
    form: Form,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Add a C function that returns probabilities. ONNX models always return them.",
        ),
    ] = False,
    preparation: Annotated[
        bool,
        typer.Option(
            "--preparation",
            help="Add C code that turns camera frames into input images, in integers. Packages "
            "include it where possible.",
        ),
    ] = False,
    blob: Annotated[
        bool,
        typer.Option(
            "--blob",
            help="Write the tables of an integer network to NAME.blob, which the program checks and"
            " loads. It can be replaced by a later one with the same layers.",
        ),
    ] = False,
    meter: Annotated[
        Path | None,
        typer.Option(
            metavar="METER", help="Add C code that reads the meter described in this TOML file."
        ),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Labels in the ONNX output: classes (names), or indices, which OpenCV needs.",
        ),
    ] = "classes",
    opset: Annotated[
        int | None,
        typer.Option(
            help="ONNX operator set: 13 to 18 (default). Use an older one for old runtimes."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a classifier as C99, an ONNX or TensorFlow Lite model, or a package.

    Example: visionshare export out/digits/classifier.safetensors --out digits-c

    Example: visionshare export CLASSIFIER --to onnx --out digits.onnx

    Example: visionshare export CLASSIFIER --to npm --out digits-npm

    Example: visionshare export reader --meter meter.toml --out meter-c

    `visionshare measure` shows the cost of an export and how many labels it changes.
    """
    from visionshare.codegen.c_text import check_identifier
    from visionshare.export import write_model, write_program
    from visionshare.export.packages import PACKAGES, package, write_package

    kinds = ("c", "onnx", "tflite", *PACKAGES)
    if to not in kinds:
        raise InputError("--to", to, choices(to, kinds))
    if preparation and to in ("onnx", "tflite"):
        raise InputError("--preparation", "set", "C or a package")
    if blob and to != "c":
        raise InputError("--blob", "set", "--to c")
    if meter is not None and to != "c":
        raise InputError("--meter", str(meter), "--to c")
    if labels not in ("classes", "indices"):
        raise InputError("--labels", labels, choices(labels, ("classes", "indices")))
    if labels != "classes" and to != "onnx":
        raise InputError("--labels", labels, "--to onnx")
    if opset is not None and to != "onnx":
        raise InputError("--opset", opset, "--to onnx")
    form.check(to)
    check_identifier("--identifier-prefix", identifier_prefix)
    model = form.load(classifier)
    if to in ("onnx", "tflite"):
        more: dict[str, Any] = {} if opset is None else {"opset": opset}
        made = form.model_program(model, to, identifier_prefix, labels=labels, **more)
        written = [write_model(made, out, "--out")]
    else:
        model, program = form.c_program(model, identifier_prefix, probabilities, blob)
        # Packages have it wherever it is possible.
        with nullcontext() if preparation else suppress(InputError):
            if preparation or to != "c":
                program = _with_preparation(model, program)
        if meter is not None:
            from visionshare.export.c.meter import with_meter

            program = with_meter(model, program, meter)
        if to == "c":
            written = write_program(program, out, "--out")
        else:
            images, _ = sample_images(model, program.pixel, most=_N_SELFTEST)
            written = write_package(package(to, model, program, images), out, "--out")
    figures: dict[str, Any] = {"files": [str(path) for path in written]}
    say(json.dumps(figures) if as_json else "\n".join(figures["files"]))


def _with_preparation(model: CompactClassifier, program: CProgram) -> CProgram:
    """Return a program with its preparation, compared with Python's where there is a compiler."""
    from visionshare.export.c.preparation import with_preparation
    from visionshare.export.preparation import check_preparation
    from visionshare.export.toolchain import compiler

    program = with_preparation(model, program)
    try:
        compiler()
    except ExportError:
        return program
    check_preparation(model, program)
    return program
