"""The command that writes a classifier in another form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.errors import DataError, InputError

if TYPE_CHECKING:
    from visionshare.classifier import CompactClassifier

__all__ = ["register"]

_FORMS = ("c",)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(export)


def export(
    classifier: Annotated[Path, typer.Argument(help="A classifier file.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    to: Annotated[str, typer.Option(help="Form: c.")] = "c",
    name: Annotated[str, typer.Option(help="First part of all names in it.")] = "classifier",
    quantise: Annotated[str, typer.Option(help="Tables: none, int8 or int16.")] = "none",
    pixel: Annotated[str | None, typer.Option(help="Values of an image: uint8 or float32.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Only the first rounds of learning.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="A function of probabilities too.")
    ] = False,
    early_exit: Annotated[
        bool, typer.Option("--early-exit", help="Images stop where the classifier's rule says.")
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option("--measure", help="Labelled images: a name of the catalogue, folder or file."),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder with data sets.")] = None,
    split: Annotated[str, typer.Option(help="Split to measure on: test or train.")] = "test",
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Write a classifier as C99: one header, one source, a Makefile and an example.

    Example: visionshare export out/digits/classifier.safetensors --to c --out digits-c

    Example: visionshare export CLASSIFIER --out small --quantise int8 --measure digits
    """
    from visionshare import load
    from visionshare.export import c_program, object_size, write_program

    if to not in _FORMS:
        raise InputError("--to", to, " or ".join(map(repr, _FORMS)))
    model = load(classifier)
    if rounds is not None:
        if not model.path:
            raise InputError("--rounds", rounds, "no rounds: this classifier has no path")
        model = model.at(rounds)
    program = c_program(model, name, pixel, quantise, probabilities, early_exit)
    measured = None
    if measure is not None:
        measured = _measured(model, program.pixel, quantise, early_exit, measure, data, split)
    paths = write_program(program, out)
    size = object_size(program)
    figures: dict[str, Any] = {
        "files": [str(path) for path in paths],
        "features": model.n_features,
        "tables": quantise,
        "flash_bytes": None if size is None else size[0],
        "ram_bytes": program.ram + (0 if size is None else size[1]),
    }
    if measured is not None:
        figures["measured"] = measured
    _say(figures, as_json)


def _measured(
    model: CompactClassifier,
    pixel: str,
    quantise: str,
    early_exit: bool,
    source: str,
    data: Path | None,
    split: str,
) -> dict[str, Any]:
    """Return errors of the classifier and of its C on labelled images, and how often they agree."""
    import numpy as np

    from visionshare.classifier import EarlyExit
    from visionshare.cli.classify import geometry
    from visionshare.datasets import load_images
    from visionshare.export import compile_classifier

    held = load_images(source, split, data, *geometry(model))
    truth = np.asarray(held.classes)[held.labels].astype(str)
    unknown = sorted(set(truth.tolist()) - {str(c) for c in model.classes_})
    if unknown:
        raise DataError(f"{source}: classes {unknown[:5]} are unknown to the classifier")
    images = held.images
    if pixel == "float32" and images.dtype == np.uint8:
        images = images.astype(np.float32) / np.float32(255)
    ours = (EarlyExit(model) if early_exit else model).predict(images).astype(str)
    theirs = compile_classifier(model, pixel, quantise, early_exit).predict(images).astype(str)
    return {
        "images": len(held),
        "errors": int(np.sum(ours != truth)),
        "errors_of_c": int(np.sum(theirs != truth)),
        "different": int(np.sum(ours != theirs)),
    }


def _say(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(figures))
        return
    flash = figures["flash_bytes"]
    typer.echo(f"features   {figures['features']}, tables: {figures['tables']}")
    typer.echo(
        f"flash      {flash:,} bytes, code and tables, compiled here for size"
        if flash is not None
        else "flash      unknown: no compiler here"
    )
    typer.echo(f"ram        {figures['ram_bytes']:,} bytes on a small core, beside the stack")
    if "measured" in figures:
        held = figures["measured"]
        n = held["images"]
        typer.echo(f"python     {100 * held['errors'] / n:.2f} % error ({held['errors']} of {n})")
        typer.echo(
            f"c          {100 * held['errors_of_c'] / n:.2f} % error "
            f"({held['errors_of_c']} of {n}); {held['different']} images classified differently"
        )
    for path in figures["files"]:
        typer.echo(f"wrote      {path}")
