"""The command that writes a classifier in another form."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from visionshare.cli.images import labeled_images
from visionshare.cli.listing import completes
from visionshare.cli.options import Classifier, DataFolder, Json
from visionshare.cli.targets import (
    CheckedTarget,
    TargetOptions,
    checked_target,
    images_for,
    report_target,
)
from visionshare.cli.text import say
from visionshare.errors import ExportError, InputError
from visionshare.errors.names import choices

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier
    from visionshare.cli.commands import Commands
    from visionshare.export import CProgram, OnnxProgram

__all__ = ["register"]

_FORMS = ("c", "onnx")
_QUANTIZED = ("auto", "none", "int16", "int8", "int4")
# Images of the self-test of a package.
_OF_SELFTEST = 4


def register(app: Commands) -> None:
    """Add the command to the application."""
    app.command()(export)


def export(
    classifier: Classifier,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write to; or a file *.onnx.")
    ] = None,
    to: Annotated[str, typer.Option(help="Form: c or onnx.")] = "c",
    identifier_prefix: Annotated[
        str, typer.Option(help="Prefix of all C identifiers and files; name of the ONNX graph.")
    ] = "classifier",
    quantize: Annotated[
        str,
        typer.Option(
            help="none, int16, int8 or int4; or auto: int8 with --target or --package if all then "
            "computes in integers, otherwise none."
        ),
    ] = "auto",
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="Training images on which int8 and int4 round; layers of templates compute in "
            "integers with them. A name of the catalog, a folder or a file.",
            autocompletion=completes("datasets"),
        ),
    ] = None,
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
    preparation: Annotated[
        bool,
        typer.Option(
            "--preparation",
            help="Add C that makes images of a camera's frames, in integer arithmetic; in ONNX, "
            "take pictures of any size.",
        ),
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
            autocompletion=completes("datasets"),
        ),
    ] = None,
    data: DataFolder = None,
    split: Annotated[str, typer.Option(help="Split to measure on: test or train.")] = "test",
    package: Annotated[
        str | None,
        typer.Option(
            help="Write a package with a self-test: arduino, platformio, zephyr, esp-idf, "
            "micropython or npm.",
            autocompletion=completes("packages", paths=False),
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Measure flash, memory, stack and instructions on a core: cortex-m0plus, "
            "cortex-m4, cortex-m7, cortex-m33, esp32, rv32imc, wasm or host.",
            autocompletion=completes("targets", paths=False),
        ),
    ] = None,
    optimize: Annotated[
        str | None,
        typer.Option(
            help="What is compiled for a core: size (default with --max-flash), speed (default "
            "otherwise) or more-speed."
        ),
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(
            help="Labeled images that the core classifies: a name of the catalog, a folder or a "
            "file; bundled digits when omitted.",
            autocompletion=completes("datasets"),
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="How many of them at most.")] = 100,
    max_flash: Annotated[
        str | None, typer.Option(help='Fail if it takes more flash, such as "10KiB".')
    ] = None,
    max_ram: Annotated[
        str | None, typer.Option(help='Fail if it takes more memory, such as "2KiB".')
    ] = None,
    max_instructions: Annotated[
        str | None, typer.Option(help='Fail if an image takes more on average, such as "1M".')
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a classifier as C99 (header, source, Makefile and example), or as an ONNX model."""
    # Example: visionshare export out/digits/classifier.safetensors --to c --out digits-c Example:
    # visionshare export CLASSIFIER --out small --quantize int8 --measure digits Example:
    # visionshare export CLASSIFIER --to onnx --out digits.onnx Example: visionshare export
    # CLASSIFIER --target cortex-m4 --max-flash 10KiB Example: visionshare export CLASSIFIER
    # --package npm --out digits-npm
    from visionshare import load
    from visionshare.codegen.c_text import check_identifier
    from visionshare.export import write_program
    from visionshare.export.packages import PACKAGES

    if to not in _FORMS:
        raise InputError("--to", to, choices(to, _FORMS))
    for_device = target is not None or package is not None
    quantize = _checked_quantize(quantize, calibrate, to, for_device)
    if preparation and package is not None:
        raise InputError("--preparation", "set", "no --package")
    if to == "onnx" and early_exit:
        raise InputError("--early-exit", "set", "--to c; for ONNX, --rounds")
    if out is None and target is None:
        raise InputError("--out", None, "a folder, or --target")
    if package is not None:
        if package not in PACKAGES:
            raise InputError("--package", package, choices(package, PACKAGES))
        if out is None or to != "c":
            raise InputError("--package", package, "--out FOLDER, and --to c")
    limits = (max_flash, max_ram, max_instructions)
    optimization = optimize or _optimization(max_flash)
    of_core = TargetOptions(target, optimization, images, count, data, *limits)
    core = _core(of_core, to, measure, package)
    check_identifier("--identifier-prefix", identifier_prefix)
    model = load(classifier)
    if rounds is not None:
        if not model.path:
            raise InputError("--rounds", rounds, "no rounds: this classifier has no path")
        model = model.at(rounds)
    labeled = None if measure is None else _Labeled(model, measure, data, split)
    examples = None
    if calibrate is not None:
        examples = labeled_images(model, calibrate, data, "train").images
    exported = model
    if examples is not None and pixel != "float32" and not early_exit:
        exported = _in_integers(model, examples, quantize, to)
    if exported is not model:
        quantize, examples = "none", None
    if to == "onnx" and out is not None:
        figures = _export_onnx(exported, out, (identifier_prefix, pixel, preparation), labeled)
        _print_figures(figures, to, as_json)
        return
    options = _COptions(identifier_prefix, pixel, quantize, probabilities, early_exit, examples)
    if core is None and package is None and out is not None:
        _print_figures(_export_c(exported, out, options, labeled, preparation), to, as_json)
        return
    program = _program(exported, options, preparation)
    if core is not None:
        report_target(model, program, core, as_json)
    # Written only if it fits.
    if package is not None and out is not None:
        paths = _write_package(package, exported, program, out, images, data)
        if core is None:
            files = [str(path) for path in paths]
            say(json.dumps({"files": files}) if as_json else "\n".join(files))
    elif out is not None:
        write_program(program, out, "--out")


def _checked_quantize(quantize: str, calibrate: str | None, to: str, for_device: bool) -> str:
    """Return what --quantize asks for, where it goes with the other options."""
    if quantize not in _QUANTIZED:
        raise InputError("--quantize", quantize, choices(quantize, _QUANTIZED))
    if to == "onnx" and quantize == "int16":
        raise InputError("--quantize", quantize, "'none', 'int8' or 'int4' with --to onnx")
    if calibrate is None and (quantize == "int4" or (to, quantize) == ("onnx", "int8")):
        of_onnx = " and --to onnx" if to == "onnx" else ""
        raise InputError(
            "--calibrate", None, f"training images, with --quantize {quantize}{of_onnx}"
        )
    if calibrate is not None and quantize in ("none", "int16"):
        raise InputError("--calibrate", calibrate, "nothing without --quantize int4 or int8")
    automatic = "auto" if for_device or calibrate is not None else "none"
    return automatic if quantize == "auto" else quantize


def _in_integers(
    model: CompactClassifier, examples: np.ndarray, tables: str, to: str
) -> CompactClassifier:
    """Return the classifier with integers for floats, or as it is where its layers have none."""
    from visionshare.classifier import can_be_quantized
    from visionshare.classifier import quantize as quantized

    if can_be_quantized(model):
        return quantized(model, examples, 4 if tables == "int4" else 8)
    if to == "onnx":
        accepted = "nothing: the features of this classifier have no integers in ONNX"
        raise InputError("--calibrate", type(model.family).name, accepted)
    return model


def _optimization(max_flash: str | None) -> str:
    """Return what is compiled for where nothing is said."""
    return "speed" if max_flash is None else "size"


def _write_package(
    kind: str,
    model: CompactClassifier,
    program: CProgram,
    out: Path,
    images: str | None,
    data: Path | None,
) -> list[Path]:
    """Write a package, its self-test with a few images."""
    from visionshare.export.packages import package, write_package

    few = images_for(model, program.pixel, images, data, _OF_SELFTEST)[0]
    return write_package(package(kind, model, program, few), out, "--out")


def _core(
    options: TargetOptions, to: str, measure: str | None, package: str | None
) -> CheckedTarget | None:
    """Return checked options of a core, or None where none is named."""
    if options.target is not None:
        if to != "c":
            raise InputError("--target", options.target, "--to c")
        if measure is not None:
            raise InputError("--measure", measure, "--images with --target")
        return checked_target(options)
    for name in ("images", "max_flash", "max_ram", "max_instructions"):
        given = getattr(options, name)
        if given is not None and not (name == "images" and package is not None):
            raise InputError("--" + name.replace("_", "-"), given, "nothing without --target")
    if measure is not None and package is not None:
        raise InputError("--measure", measure, "nothing with --package")
    return None


class _COptions(NamedTuple):
    """Options of :func:`visionshare.export.c_program`."""

    name: str
    pixel: str | None
    quantize: str
    probabilities: bool
    early_exit: bool
    examples: np.ndarray | None


def _program(model: CompactClassifier, options: _COptions, preparation: bool) -> CProgram:
    """Return the C of a classifier, and of its preparation where asked."""
    from visionshare.export import c_program

    quantize = "none" if options.quantize == "auto" else options.quantize
    program = c_program(model, **options._replace(quantize=quantize)._asdict())
    # Where it computes in integers as it is, there is nothing to round.
    if options.quantize == "auto" and program.score != "int32":
        rounded = c_program(model, **options._replace(quantize="int8")._asdict())
        # Tables of 8 bits alone would change scores and save no instruction.
        program = rounded if rounded.score == "int32" else program
    if not preparation:
        return program
    from visionshare.export.c.preparation import with_preparation

    return with_preparation(model, program)


def _check_prepared(model: CompactClassifier, program: CProgram) -> int | None:
    """Return how many frames this machine's compiler prepares as Python does; None without one."""
    from visionshare.export.preparation import check_preparation
    from visionshare.export.toolchain import compiler

    if f"{program.name}_prepare.c" not in program.files:
        return None
    try:
        compiler()
    except ExportError:
        return None
    return check_preparation(model, program)


class _Labeled(NamedTuple):
    """Labeled images to measure on."""

    model: CompactClassifier
    source: str
    data: Path | None
    split: str


class _Exported(NamedTuple):
    """What an export predicts, of which form it is, and the type of pixel that it takes."""

    predict: Callable[[np.ndarray], np.ndarray]
    form: str
    pixel: str


def _export_c(
    model: CompactClassifier,
    out: Path,
    options: _COptions,
    labeled: _Labeled | None,
    preparation: bool,
) -> dict[str, Any]:
    """Write C and return its figures."""
    from visionshare.classifier import EarlyExit
    from visionshare.export import compile_classifier, object_size, write_program

    program = _program(model, options, preparation)
    frames = _check_prepared(model, program)
    measured: dict[str, Any] = {}
    if labeled is not None:
        # Compiled only when the images are loaded.
        def predict(images: np.ndarray) -> np.ndarray:
            compiled = compile_classifier(
                model, program.pixel, program.quantize, options.early_exit,
                examples=options.examples,
            )  # fmt: skip
            return compiled.predict(images)

        ours = EarlyExit(model) if options.early_exit else labeled.model
        exported = _Exported(predict, "c", program.pixel)
        measured["measured"] = _measure(ours.predict, exported, labeled)
    paths = write_program(program, out, "--out")
    size, bits = object_size(program), model.metadata.get("quantized_bits")
    return {
        "files": [str(path) for path in paths],
        "features": model.n_features,
        "tables": program.quantize if bits is None else f"int{bits}",
        "flash_bytes": None if size is None else size.constant,
        "ram_bytes": program.ram + (0 if size is None else size.variable),
        **({} if frames is None else {"frames_prepared_as_in_python": frames}),
        **measured,
    }


def _export_onnx(
    model: CompactClassifier,
    out: Path,
    options: tuple[str, str | None, bool],
    labeled: _Labeled | None,
) -> dict[str, Any]:
    """Write an ONNX model of options as :func:`onnx_program` takes them; return its figures."""
    from visionshare.export import onnx_program, run_onnx, write_onnx

    program = onnx_program(model, *options)
    prepared = _check_pictures(model, program) if program.prepares else None
    measured: dict[str, Any] = {}
    if labeled is not None:
        # Images of data sets are prepared: the same model is measured without its preparation.
        measurable = onnx_program(model, *options[:2]) if program.prepares else program
        exported = _Exported(
            lambda images: run_onnx(measurable, images).labels, "onnx", program.pixel
        )
        measured["measured"] = _measure(labeled.model.predict, exported, labeled)
    path = write_onnx(program, out, "--out")
    return {
        "files": [str(path)],
        "features": model.n_features,
        "bytes": len(program.content),
        "opset": program.opset,
        **({} if prepared is None else {"pictures_prepared_as_in_python": prepared}),
        **measured,
    }


def _check_pictures(model: CompactClassifier, program: OnnxProgram) -> int | None:
    """Return how many pictures a model prepares as Python does; None without onnxruntime."""
    from visionshare.export.preparation import check_onnx_preparation

    if find_spec("onnxruntime") is None:
        return None
    return check_onnx_preparation(model, program)


def _measure(
    predict: Callable[[np.ndarray], np.ndarray], exported: _Exported, labeled: _Labeled
) -> dict[str, Any]:
    """Return errors of the classifier and of its export on labeled images, and how they differ."""
    import numpy as np

    model = labeled.model
    given = labeled_images(*labeled)
    images, truth = given.images, model.classes_[given.labels]
    if exported.pixel == "float32":
        unit = np.float32(255 if images.dtype == np.uint8 else 1)
        images = images.astype(np.float32) / unit
    ours, theirs = predict(images), exported.predict(images)
    return {
        "images": len(images),
        "errors": int(np.sum(ours != truth)),
        f"errors_of_{exported.form}": int(np.sum(theirs != truth)),
        "different": int(np.sum(ours != theirs)),
    }


def _print_figures(figures: dict[str, Any], form: str, as_json: bool) -> None:
    if as_json:
        say(json.dumps(figures))
        return
    if form == "onnx":
        say(f"features   {figures['features']}")
        say(f"model      {figures['bytes']:,} bytes, opset {figures['opset']}")
        if "pictures_prepared_as_in_python" in figures:
            count = figures["pictures_prepared_as_in_python"]
            say(f"prepared   {count} pictures, each as Python prepares it")
    else:
        _print_sizes(figures)
    if "measured" in figures:
        measured = figures["measured"]
        n, ours, theirs = measured["images"], measured["errors"], measured[f"errors_of_{form}"]
        say(f"python     {100 * ours / n:.2f} % error ({ours} of {n})")
        say(
            f"{form:<10} {100 * theirs / n:.2f} % error "
            f"({theirs} of {n}); {measured['different']} images classified differently"
        )
    for path in figures["files"]:
        say(f"wrote      {path}")


def _print_sizes(figures: dict[str, Any]) -> None:
    flash = figures["flash_bytes"]
    say(f"features   {figures['features']}, tables: {figures['tables']}")
    say(
        f"flash      {flash:,} bytes, code and tables, compiled for size on this machine"
        if flash is not None
        else "flash      unknown: no C compiler on this machine"
    )
    say(f"ram        {figures['ram_bytes']:,} bytes on a small core, beside the stack")
    if "frames_prepared_as_in_python" in figures:
        count = figures["frames_prepared_as_in_python"]
        say(f"prepared   {count} frames of a camera, each as Python prepares it")
