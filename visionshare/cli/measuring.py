"""Commands that say what a classifier costs: on cores and in other forms, and in Python."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from visionshare.cli.forms import Form, sample_images
from visionshare.cli.listing import completes
from visionshare.cli.options import Classifier, Jobs, Json
from visionshare.cli.text import say
from visionshare.errors import InputError
from visionshare.errors.names import choices

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier
    from visionshare.export import CProgram
    from visionshare.export.targets import Target, TargetLimits

# Most images of a timed batch, and most of their bytes.
_MOST_IMAGES = 4096
_MOST_BYTES = 1 << 28
# Images that an emulated core classifies: each takes a second.
_N_ON_CORE = 100
# Frames of a camera, and how many.
_FRAME = (240, 320)
_N_FRAMES = 10
# Figures that only some cores have.
_OF_CYCLES = ("cycles", "cycles_from", "microjoules", "chip")


@dataclass(frozen=True)
class CoreOptions:
    """Core."""

    count: Annotated[int, typer.Option(help="Maximum number of images.")] = _N_ON_CORE
    optimize: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Optimize for size (default with --max-flash), speed (default otherwise) or "
            "more-speed.",
        ),
    ] = None
    max_flash: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help='Fail if flash exceeds this size, such as "10KiB".'),
    ] = None
    max_ram: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help='Fail if RAM exceeds this size, such as "2KiB".'),
    ] = None
    max_instructions: Annotated[
        str | None,
        typer.Option(
            metavar="COUNT",
            help='Fail if an image takes more instructions on average, such as "1M".',
        ),
    ] = None

    frame: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Also measure the preparation of a 240x320 camera frame: gray, rgb565, "
            "rgb565-swapped, yuyv, uyvy or rgb888.",
        ),
    ] = None

    def limits(self) -> TargetLimits:
        """Return the limits of all figures, checked."""
        from visionshare.cli.quantities import count_of
        from visionshare.export.targets import TargetLimits
        from visionshare.machine.resources import parse_size

        flash = self.max_flash
        ram = self.max_ram
        instructions = self.max_instructions
        return TargetLimits(
            None if flash is None else parse_size(flash, "--max-flash"),
            None if ram is None else parse_size(ram, "--max-ram"),
            None if instructions is None else count_of(instructions, "--max-instructions"),
        )

    def optimization(self) -> str:
        """Return what is compiled for, checked."""
        from visionshare.export.targets import OPTIMIZATIONS

        chosen = self.optimize or ("speed" if self.max_flash is None else "size")
        if chosen not in OPTIMIZATIONS:
            raise InputError("--optimize", chosen, choices(chosen, OPTIMIZATIONS))
        return chosen


def measure(
    classifier: Classifier,
    images: Annotated[
        str | None,
        typer.Argument(
            help="Labeled images: a name of the catalog, a folder or a file. Default: the bundled "
            "digits, without labels.",
            autocompletion=completes("datasets"),
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="c, onnx or tflite on this machine, or an emulated core: cortex-m0plus, cortex-m4,"
            " cortex-m7, cortex-m33, cortex-m55, esp32, rv32imc, avr, atmega2560 or wasm.",
            autocompletion=completes("targets", paths=False),
        ),
    ] = "c",
    *,
    form: Form,
    core: CoreOptions,
    as_json: Json = False,
) -> None:
    """Measure an exported classifier: errors, bytes, and instructions on a core.

    Example: visionshare measure out/digits/classifier.safetensors digits

    Example: visionshare measure CLASSIFIER digits --target onnx

    Example: visionshare measure CLASSIFIER --target cortex-m4 --max-flash 16KiB

    If a limit is exceeded, the exit code is 2.
    """
    from visionshare.export.targets import TARGETS

    known = ("c", "onnx", "tflite", *TARGETS)
    if target not in known:
        raise InputError("--target", target, choices(target, known))
    if core.count < 1:
        raise InputError("--count", core.count, "an integer of at least 1")
    optimize = core.optimization()
    limits = core.limits()
    on_core = target in TARGETS
    if not on_core:
        for name, value in vars(core).items():
            if value != getattr(CoreOptions, name):
                option = "--" + name.replace("_", "-")
                raise InputError(option, value, "nothing without a core in --target")
    form.check(target)
    model = form.load(classifier)
    if target in ("onnx", "tflite"):
        figures = _as_model(model, form, images, target)
    elif target == "c":
        figures = _in_c(model, form, images)
    else:
        figures = _on_core(model, form, images, target, optimize, core)
    say(json.dumps(figures) if as_json else "\n".join(_lines(figures)))
    if on_core:
        limits.check(figures)


def _as_model(
    model: CompactClassifier, form: Form, source: str | None, target: str
) -> dict[str, Any]:
    """Return figures of the model for onnxruntime or LiteRT, run here."""
    from visionshare.export import OnnxProgram, run_onnx, run_tflite

    program = form.model_program(model, target)
    figures = {"target": target, "bytes": len(program.content)}
    images, truth = sample_images(model, program.pixel, source, form.data)
    if isinstance(program, OnnxProgram):
        figures["opset"] = program.opset
        labels = run_onnx(program, images).labels
    else:
        unit = 255 if program.pixel == "float32" else 1
        labels = model.classes_[run_tflite(program, images * unit)[0].argmax(axis=1)]
    return figures | _compared(model, images, truth, labels)


def _in_c(model: CompactClassifier, form: Form, source: str | None) -> dict[str, Any]:
    """Return figures of the C, compiled for this machine."""
    from visionshare.classifier import EarlyExit
    from visionshare.export import object_size
    from visionshare.export.compiled import CompiledClassifier
    from visionshare.export.library_cache import cached_library

    exported, program = form.c_program(model)
    images, truth = sample_images(model, program.pixel, source, form.data)
    compiled = CompiledClassifier(exported, program, cached_library(program))
    size = object_size(program)
    figures = {
        "target": "c",
        "arithmetic": _arithmetic(program),
        "tables": _tables(exported, program),
        "flash": None if size is None else size.constant,
        "ram": program.ram + (0 if size is None else size.variable),
    }
    ours = EarlyExit(model) if form.early_exit else model
    return figures | _compared(ours, images, truth, compiled.predict(images))


def _on_core(
    model: CompactClassifier,
    form: Form,
    source: str | None,
    target: str,
    optimize: str,
    options: CoreOptions,
) -> dict[str, Any]:
    """Return figures of the C on an emulated core."""
    import numpy as np

    from visionshare.export.targets import device_sources, find_target, measure

    exported, program = form.c_program(model)
    images, truth = sample_images(model, program.pixel, source, form.data, options.count)
    core = find_target(target)
    measured = measure(device_sources(exported, program), core, images, optimize)
    figures = {
        "target": core.name,
        "description": core.description,
        "arithmetic": _arithmetic(program),
        "tables": _tables(exported, program),
        "optimize": optimize,
        **vars(measured.figures),
    }
    if program.reference is not None:
        expected = program.reference(images)
        figures["different_scores"] = int(np.sum((measured.scores != expected).any(axis=1)))
    figures |= _compared(model, images, truth, model.classes_[measured.labels])
    if options.frame is not None:
        figures |= _of_frames(exported, program, options.frame, images, core, optimize)
    figures["layers"] = _layers(exported, measured.figures.instructions)
    return figures | {"remark": core.remark}


def _layers(model: CompactClassifier, instructions: int) -> list[dict[str, Any]]:
    """Return what each layer of a network of integers takes; nothing of other families."""
    layers = getattr(model.family, "layers_", [])
    if not all(hasattr(layer, "nbytes") for layer in layers):
        return []
    found = [
        {
            "kind": layer.kind,
            "output": list(layer.out_shape),
            "macs": int(layer.macs()),
            "flash": int(layer.nbytes),
            "ram": math.prod(layer.out_shape),
        }
        for layer in layers
    ]
    # Instructions go with multiply-accumulates: loops of all layers are the same.
    total = max(1, sum(layer["macs"] for layer in found) + model.weights.size)
    return [layer | {"instructions": instructions * layer["macs"] // total} for layer in found]


def _of_frames(
    model: CompactClassifier,
    program: CProgram,
    kind: str,
    images: np.ndarray,
    core: Target,
    optimize: str,
) -> dict[str, Any]:
    """Return figures of frames that show images, prepared and classified on a core."""
    import numpy as np

    from visionshare.datasets.canvas import to_gray
    from visionshare.datasets.frames import FRAMES, frame_of_gray
    from visionshare.export.c.preparation import (
        frame_picture,
        whole_preprocessing,
        with_preparation,
    )
    from visionshare.export.targets import frame_sources, measure

    if kind not in FRAMES:
        raise InputError("--frame", kind, choices(kind, FRAMES))
    if core.machine == "avr":
        raise InputError("--frame", kind, "a core with memory for a frame")
    program = with_preparation(model, program)
    sources = frame_sources(model, program, kind, *_FRAME)
    shape = (model.image_shape[0], model.image_shape[1])
    frames = []
    for image in map(to_gray, images[:_N_FRAMES].reshape(-1, *shape, *model.image_shape[2:][:1])):
        image = image.reshape(shape)
        # Large, and on paper of the same gray as the image's corner.
        scale = max(1, min(side // (2 * own) for side, own in zip(_FRAME, shape, strict=True)))
        shown = image.repeat(scale, axis=0).repeat(scale, axis=1)[: _FRAME[0], : _FRAME[1]]
        picture = np.full(_FRAME, image[0, 0], np.uint8)
        top, left = ((side - own) // 2 for side, own in zip(_FRAME, shown.shape, strict=True))
        picture[top : top + shown.shape[0], left : left + shown.shape[1]] = shown
        frames.append(frame_of_gray(picture, kind))
    measured = measure(sources, core, np.stack(frames), optimize)
    steps = whole_preprocessing(model)
    rasters = [steps.apply(frame_picture(model, frame, kind), shape) for frame in frames]
    expected = model.predict(np.stack(rasters).reshape(-1, *model.image_shape))
    kept = ("flash", "ram", "stack", "instructions")
    return {
        "frame": f"{kind}, {_FRAME[0]}x{_FRAME[1]}",
        **{f"frame_{name}": getattr(measured.figures, name) for name in kept},
        "frame_different_labels": int(np.sum(model.classes_[measured.labels] != expected)),
    }


def _arithmetic(program: CProgram) -> str:
    return "integers" if program.score == "int32" else "floats"


def _tables(model: CompactClassifier, program: CProgram) -> str:
    """Return what the tables of a program hold."""
    bits = model.metadata.get("quantized_bits")
    return program.quantize if bits is None else f"int{bits}"


def _compared(
    model: Any, images: np.ndarray, truth: np.ndarray | None, labels: np.ndarray
) -> dict[str, Any]:
    """Return how many labels differ from Python's, and the errors of both."""
    import numpy as np

    ours = model.predict(images)
    figures = {"images": len(images), "different_labels": int(np.sum(ours != labels))}
    if truth is not None:
        right = model.classes_[truth]
        figures["errors"] = int(np.sum(labels != right))
        figures["errors_in_python"] = int(np.sum(ours != right))
    return figures


def _lines(figures: dict[str, Any]) -> list[str]:
    """Return figures as lines of a name and a value."""
    n = figures["images"]
    texts = {
        "flash": "{:,} bytes of code and tables",
        "ram": "{:,} bytes",
        "stack": "{:,} bytes at most",
        "bytes": "{:,}",
        "instructions": "{:,} per image on average",
        "most_instructions": "{:,} at most",
        "cycles": "{:,} per image on average",
        "microjoules": "{:,.0f} per image on average",
        "different_labels": f"{{}} of {n}, compared with Python",
        "different_scores": f"{{}} of {n}, compared with Python",
        "frame_flash": "{:,} bytes, with its preparation",
        "frame_ram": "{:,} bytes, without the frame",
        "frame_stack": "{:,} bytes at most",
        "frame_instructions": "{:,} per frame, prepared and classified",
        "frame_different_labels": "{} compared with Python",
        "errors": f"{{}} of {n}",
        "errors_in_python": f"{{}} of {n}",
    }
    lines = []
    for name, value in figures.items():
        if name == "layers":
            lines += [
                f"{layer['kind']:18} {layer['flash']:,} bytes of tables, {layer['ram']:,} of memory"
                f", about {layer['instructions']:,} instructions"
                for layer in value
            ]
        if name == "layers" or (name in _OF_CYCLES and value is None):
            continue
        shown = "unknown" if value is None else texts.get(name, "{}").format(value)
        if shown:
            lines.append(f"{name.replace('_', ' '):18} {shown}")
    return lines


def bench(classifier: Classifier, threads: Jobs = 1, as_json: Json = False) -> None:
    """Time a classifier on random images, one by one and in batches.

    Example: visionshare bench out/digits/classifier.safetensors
    """
    import time

    import numpy as np

    from visionshare import load

    model = load(classifier)
    n = min(_MOST_IMAGES, max(1, _MOST_BYTES // math.prod(model.image_shape)))
    images = np.random.default_rng(0).integers(0, 256, (n, *model.image_shape), dtype=np.uint8)

    def seconds(part: np.ndarray, repetitions: int) -> float:
        """Return the median time of a call, after one that compiles."""
        times = []
        for _ in range(repetitions + 1):
            start = time.perf_counter()
            model.decision_function(part, threads)
            times.append(time.perf_counter() - start)
        return float(np.median(times[1:]))

    figures = {
        "microseconds_one_image": 1e6 * seconds(images[0], 500),
        "images_per_second_in_batches": n / seconds(images, 5),
        "threads": threads,
        "macs": model.macs,
    }
    if as_json:
        say(json.dumps(figures))
        return
    say(f"one image          {figures['microseconds_one_image']:.0f} µs")
    say(f"in batches         {figures['images_per_second_in_batches']:,.0f} images per second")
    say(f"threads            {threads}")
    say(f"macs per image     {model.macs:,}")
