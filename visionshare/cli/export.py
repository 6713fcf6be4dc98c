"""The command that writes a classifier in another form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from visionshare.cli.images import labeled_images
from visionshare.cli.options import Classifier, DataFolder, Json
from visionshare.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier

__all__ = ["register"]

_FORMS = ("c", "onnx")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(export)


def export(
    classifier: Classifier,
    out: Annotated[Path, typer.Option("--out", help="Folder to write to; or a file *.onnx.")],
    to: Annotated[str, typer.Option(help="Form: c or onnx.")] = "c",
    identifier_prefix: Annotated[
        str, typer.Option(help="Prefix of all C identifiers and files; name of the ONNX graph.")
    ] = "classifier",
    quantize: Annotated[str, typer.Option(help="C tables: none, int8 or int16.")] = "none",
    pixel: Annotated[
        str | None,
        typer.Option(help="Type of a pixel: uint8 or float32; uint8 unless examples are vectors."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Only the features of the first rounds of training.")
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Add a C function of probabilities; ONNX has them."),
    ] = False,
    early_exit: Annotated[
        bool,
        typer.Option(
            "--early-exit", help="In C, stop early on easy images, by the classifier's exit rule."
        ),
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            help="Count errors of the export on labeled images: a name of the catalog, a folder "
            "or a file.",
        ),
    ] = None,
    data: DataFolder = None,
    split: Annotated[str, typer.Option(help="Split to measure on: test or train.")] = "test",
    as_json: Json = False,
) -> None:
    """Write a classifier as C99 (header, source, Makefile and example), or as an ONNX model.

    Example: visionshare export out/digits/classifier.safetensors --to c --out digits-c

    Example: visionshare export CLASSIFIER --out small --quantize int8 --measure digits

    Example: visionshare export CLASSIFIER --to onnx --out digits.onnx
    """
    from visionshare import load
    from visionshare.codegen.c_text import check_identifier

    if to not in _FORMS:
        raise InputError("--to", to, " or ".join(map(repr, _FORMS)))
    if to == "onnx" and quantize != "none":
        raise InputError("--quantize", quantize, "'none' with --to onnx")
    if to == "onnx" and early_exit:
        raise InputError("--early-exit", "set", "--to c; for ONNX, --rounds")
    check_identifier("--identifier-prefix", identifier_prefix)
    model = load(classifier)
    if rounds is not None:
        if not model.path:
            raise InputError("--rounds", rounds, "no rounds: this classifier has no path")
        model = model.at(rounds)
    labeled = None if measure is None else _Labeled(measure, data, split)
    if to == "onnx":
        figures = _export_onnx(model, out, identifier_prefix, pixel, labeled)
    else:
        options = _COptions(identifier_prefix, pixel, quantize, probabilities, early_exit)
        figures = _export_c(model, out, options, labeled)
    _print_figures(figures, to, as_json)


class _COptions(NamedTuple):
    """Options of :func:`visionshare.export.c_program`."""

    name: str
    pixel: str | None
    quantize: str
    probabilities: bool
    early_exit: bool


class _Labeled(NamedTuple):
    """Labeled images to measure on: a name, folder or file, where data sets are, and the split."""

    source: str
    data: Path | None
    split: str


class _Exported(NamedTuple):
    """What an export predicts, of which form it is, and the type of pixel that it takes."""

    predict: Callable[[np.ndarray], np.ndarray]
    form: str
    pixel: str


def _export_c(
    model: CompactClassifier, out: Path, options: _COptions, labeled: _Labeled | None
) -> dict[str, Any]:
    """Write C and return its figures."""
    from visionshare.classifier import EarlyExit
    from visionshare.export import c_program, compile_classifier, object_size, write_program

    program = c_program(model, **options._asdict())
    measured: dict[str, Any] = {}
    if labeled is not None:
        # Compiled only when the images are loaded.
        def predict(images: np.ndarray) -> np.ndarray:
            compiled = compile_classifier(
                model, program.pixel, program.quantize, options.early_exit
            )
            return compiled.predict(images)

        ours = EarlyExit(model) if options.early_exit else model
        exported = _Exported(predict, "c", program.pixel)
        measured["measured"] = _measure(model, ours.predict, exported, labeled)
    paths = write_program(program, out, "--out")
    size = object_size(program)
    return {
        "files": [str(path) for path in paths],
        "features": model.n_features,
        "tables": program.quantize,
        "flash_bytes": None if size is None else size.constant,
        "ram_bytes": program.ram + (0 if size is None else size.variable),
        **measured,
    }


def _export_onnx(
    model: CompactClassifier, out: Path, name: str, pixel: str | None, labeled: _Labeled | None
) -> dict[str, Any]:
    """Write an ONNX model and return its figures."""
    from visionshare.export import onnx_program, run_onnx, write_onnx

    program = onnx_program(model, name, pixel)
    measured: dict[str, Any] = {}
    if labeled is not None:
        exported = _Exported(lambda images: run_onnx(program, images).labels, "onnx", program.pixel)
        measured["measured"] = _measure(model, model.predict, exported, labeled)
    path = write_onnx(program, out, "--out")
    return {
        "files": [str(path)],
        "features": model.n_features,
        "bytes": len(program.content),
        "opset": program.opset,
        **measured,
    }


def _measure(
    model: CompactClassifier,
    predict: Callable[[np.ndarray], np.ndarray],
    exported: _Exported,
    labeled: _Labeled,
) -> dict[str, Any]:
    """Return errors of the classifier and of its export on labeled images, and how they differ."""
    import numpy as np

    images, indexes = labeled_images(model, *labeled)
    truth = model.classes_.astype(str)[indexes]
    if exported.pixel == "float32":
        unit = np.float32(255 if images.dtype == np.uint8 else 1)
        images = images.astype(np.float32) / unit
    ours = predict(images).astype(str)
    theirs = exported.predict(images).astype(str)
    return {
        "images": len(images),
        "errors": int(np.sum(ours != truth)),
        f"errors_of_{exported.form}": int(np.sum(theirs != truth)),
        "different": int(np.sum(ours != theirs)),
    }


def _print_figures(figures: dict[str, Any], form: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(figures))
        return
    if form == "onnx":
        typer.echo(f"features   {figures['features']}")
        typer.echo(f"model      {figures['bytes']:,} bytes, opset {figures['opset']}")
    else:
        _print_sizes(figures)
    if "measured" in figures:
        measured = figures["measured"]
        n, ours, theirs = measured["images"], measured["errors"], measured[f"errors_of_{form}"]
        typer.echo(f"python     {100 * ours / n:.2f} % error ({ours} of {n})")
        typer.echo(
            f"{form:<10} {100 * theirs / n:.2f} % error "
            f"({theirs} of {n}); {measured['different']} images classified differently"
        )
    for path in figures["files"]:
        typer.echo(f"wrote      {path}")


def _print_sizes(figures: dict[str, Any]) -> None:
    flash = figures["flash_bytes"]
    typer.echo(f"features   {figures['features']}, tables: {figures['tables']}")
    typer.echo(
        f"flash      {flash:,} bytes, code and tables, compiled for size on this machine"
        if flash is not None
        else "flash      unknown: no C compiler on this machine"
    )
    typer.echo(f"ram        {figures['ram_bytes']:,} bytes on a small core, beside the stack")
