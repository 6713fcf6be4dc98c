"""The command that writes a classifier in another form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier, EarlyExit

__all__ = ["register"]

_FORMS = ("c", "onnx")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(export)


def export(
    classifier: Annotated[Path, typer.Argument(help="A classifier file.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to; or a file *.onnx.")],
    to: Annotated[str, typer.Option(help="Form: c or onnx.")] = "c",
    name: Annotated[str, typer.Option(help="First part of all names in it.")] = "classifier",
    quantize: Annotated[str, typer.Option(help="C tables: none, int8 or int16.")] = "none",
    pixel: Annotated[str | None, typer.Option(help="Values of an image: uint8 or float32.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Only the first rounds of learning.")] = None,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="A C function of probabilities too; ONNX has them."),
    ] = False,
    early_exit: Annotated[
        bool, typer.Option("--early-exit", help="Images stop where the classifier's rule says.")
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option("--measure", help="Labeled images: a name of the catalogue, folder or file."),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder with data sets.")] = None,
    split: Annotated[str, typer.Option(help="Split to measure on: test or train.")] = "test",
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Write a classifier as C99 (header, source, Makefile and example), or as an ONNX model.

    Example: visionshare export out/digits/classifier.safetensors --to c --out digits-c

    Example: visionshare export CLASSIFIER --out small --quantize int8 --measure digits

    Example: visionshare export CLASSIFIER --to onnx --out digits.onnx
    """
    from visionshare import load

    if to not in _FORMS:
        raise InputError("--to", to, " or ".join(map(repr, _FORMS)))
    if to == "onnx" and quantize != "none":
        raise InputError("--quantize", quantize, "'none' with --to onnx")
    if to == "onnx" and early_exit:
        raise InputError("--early-exit", "set", "--to c; for ONNX, --rounds")
    model = load(classifier)
    if rounds is not None:
        if not model.path:
            raise InputError("--rounds", rounds, "no rounds: this classifier has no path")
        model = model.at(rounds)
    measured = None if measure is None else (measure, data, split)
    if to == "onnx":
        figures = _export_onnx(model, out, name, pixel, measured)
    else:
        settings = (name, pixel, quantize, probabilities, early_exit)
        figures = _export_c(model, out, settings, measured)
    _say(figures, to, as_json)


def _export_c(
    model: CompactClassifier,
    out: Path,
    settings: tuple[str, str | None, str, bool, bool],
    measured: tuple[str, Path | None, str] | None,
) -> dict[str, Any]:
    """Write C and return its figures."""
    from visionshare.classifier import EarlyExit
    from visionshare.export import c_program, compile_classifier, object_size, write_program

    early = settings[-1]
    program = c_program(model, *settings)
    held: dict[str, Any] = {}
    if measured is not None:
        # Compiled once the images are there.
        def predict(images: np.ndarray) -> np.ndarray:
            made = compile_classifier(model, program.pixel, program.quantize, early)
            return made.predict(images)

        whole = EarlyExit(model) if early else model
        held["measured"] = _measured(whole, predict, "c", program.pixel, *measured)
    paths = write_program(program, out)
    size = object_size(program)
    return {
        "files": [str(path) for path in paths],
        "features": model.n_features,
        "tables": program.quantize,
        "flash_bytes": None if size is None else size[0],
        "ram_bytes": program.ram + (0 if size is None else size[1]),
        **held,
    }


def _export_onnx(
    model: CompactClassifier,
    out: Path,
    name: str,
    pixel: str | None,
    measured: tuple[str, Path | None, str] | None,
) -> dict[str, Any]:
    """Write an ONNX model and return its figures."""
    from visionshare.export import onnx_program, run_onnx, write_onnx

    program = onnx_program(model, name, pixel)
    held: dict[str, Any] = {}
    if measured is not None:

        def predict(images: np.ndarray) -> np.ndarray:
            return run_onnx(program, images)[0]

        held["measured"] = _measured(model, predict, "onnx", program.pixel, *measured)
    path = write_onnx(program, out)
    return {
        "files": [str(path)],
        "features": model.n_features,
        "bytes": len(program.content),
        "opset": program.opset,
        **held,
    }


def _measured(
    model: CompactClassifier | EarlyExit,
    predict: Callable[[np.ndarray], np.ndarray],
    form: str,
    pixel: str,
    source: str,
    data: Path | None,
    split: str,
) -> dict[str, Any]:
    """Return errors of the classifier and of its export on labeled images, and how they differ."""
    import numpy as np

    from visionshare.classifier import EarlyExit
    from visionshare.datasets import load_images

    classifier = model.classifier if isinstance(model, EarlyExit) else model
    size, mode = classifier.picture_size, classifier.picture_mode
    held = load_images(source, split, data, size, mode, classifier.preprocessing)
    truth = np.asarray(held.classes)[held.labels].astype(str)
    unknown = sorted(set(truth.tolist()) - {str(c) for c in model.classes_})
    if unknown:
        raise DataError(f"{source}: classes {unknown[:5]} are unknown to the classifier")
    images = held.images
    if pixel == "float32":
        bytes_held = images.dtype == np.uint8
        images = images.astype(np.float32)
        images = images / np.float32(255) if bytes_held else images
    ours = model.predict(images).astype(str)
    theirs = predict(images).astype(str)
    return {
        "images": len(held),
        "errors": int(np.sum(ours != truth)),
        f"errors_of_{form}": int(np.sum(theirs != truth)),
        "different": int(np.sum(ours != theirs)),
    }


def _say(figures: dict[str, Any], form: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(figures))
        return
    if form == "onnx":
        typer.echo(f"features   {figures['features']}")
        typer.echo(f"model      {figures['bytes']:,} bytes, opset {figures['opset']}")
    else:
        _say_sizes(figures)
    if "measured" in figures:
        held = figures["measured"]
        n, theirs = held["images"], held[f"errors_of_{form}"]
        typer.echo(f"python     {100 * held['errors'] / n:.2f} % error ({held['errors']} of {n})")
        typer.echo(
            f"{form:<10} {100 * theirs / n:.2f} % error "
            f"({theirs} of {n}); {held['different']} images classified differently"
        )
    for path in figures["files"]:
        typer.echo(f"wrote      {path}")


def _say_sizes(figures: dict[str, Any]) -> None:
    flash = figures["flash_bytes"]
    typer.echo(f"features   {figures['features']}, tables: {figures['tables']}")
    typer.echo(
        f"flash      {flash:,} bytes, code and tables, compiled here for size"
        if flash is not None
        else "flash      unknown: no compiler here"
    )
    typer.echo(f"ram        {figures['ram_bytes']:,} bytes on a small core, beside the stack")
