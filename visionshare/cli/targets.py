"""What an exported classifier takes on a core, for the command export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from visionshare.cli.text import say
from visionshare.errors import InputError
from visionshare.errors.names import choices

if TYPE_CHECKING:
    import numpy as np

    from visionshare.classifier import CompactClassifier
    from visionshare.export import CProgram
    from visionshare.export.targets import Limits, Target

__all__ = ["CheckedTarget", "TargetOptions", "checked_target", "images_for", "report_target"]

_IMAGES_BY_DEFAULT = "digits"
_RANDOM = 1000


class TargetOptions(NamedTuple):
    """What the command line says of a core, as text: its name, images to classify, and limits."""

    target: str | None
    optimize: str
    images: str | None
    most_images: int
    data: Path | None
    max_flash: str | None
    max_ram: str | None
    max_instructions: str | None


class CheckedTarget(NamedTuple):
    """The same, checked."""

    target: Target
    limits: Limits
    options: TargetOptions


def checked_target(options: TargetOptions) -> CheckedTarget:
    """Return checked options."""
    from visionshare.export.targets import OPTIMIZATIONS, Limits, find_target, parse_count
    from visionshare.machine.resources import parse_size

    if options.optimize not in OPTIMIZATIONS:
        raise InputError("--optimize", options.optimize, choices(options.optimize, OPTIMIZATIONS))
    if options.most_images < 1:
        raise InputError("--count", options.most_images, "an integer of at least 1")
    flash, ram, instructions = options.max_flash, options.max_ram, options.max_instructions
    limits = Limits(
        None if flash is None else parse_size(flash, "--max-flash"),
        None if ram is None else parse_size(ram, "--max-ram"),
        None if instructions is None else parse_count(instructions, "--max-instructions"),
    )
    return CheckedTarget(find_target(str(options.target), "--target"), limits, options)


def report_target(
    model: CompactClassifier, program: CProgram, checked: CheckedTarget, as_json: bool
) -> None:
    """Measure a classifier on a core, write the figures, and hold them against the limits."""
    from visionshare.export.targets import device_sources, measure

    target, limits, options = checked
    images, labels = images_for(
        model, program.pixel, options.images, options.data, options.most_images
    )
    measured = measure(device_sources(model, program), target, images, options.optimize)
    figures = {
        **measured.figures.as_dict(),
        **_compared(model, program, images, labels, measured.labels, measured.scores),
        **_of_preparation(model, program, checked),
        "arithmetic": "integers" if program.score == "int32" else "floats",
        "optimize": options.optimize,
        "remark": target.remark,
    }
    say(json.dumps(figures) if as_json else _text(figures, target))
    limits.check(measured.figures)


def _of_preparation(
    model: CompactClassifier, program: CProgram, checked: CheckedTarget
) -> dict[str, Any]:
    """Return what the preparation takes, where the program has one."""
    from dataclasses import asdict

    from visionshare.export.targets import measure_preparation

    if f"{program.name}_prepare.c" not in program.files:
        return {}
    found = measure_preparation(model, program, checked.target, checked.options.optimize)
    return {"preparation": asdict(found)}


def images_for(
    model: CompactClassifier, pixel: str, source: str | None, data: Path | None, most: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return images as the C takes them, and indexes of their classes where these are known."""
    import numpy as np

    from visionshare.cli.images import labeled_images
    from visionshare.datasets.intake import as_rasters

    labels: np.ndarray | None = None
    if source is not None:
        if len(model.image_shape) == 1:
            raise InputError("--images", source, "nothing: examples are vectors")
        found = labeled_images(model, source, data, "test")
        images, labels = found.images, found.labels
    else:
        images = _digits_as(model)
    # Evenly drawn: folders are often sorted by class.
    chosen = np.linspace(0, len(images) - 1, min(most, len(images))).astype(np.int64)
    images = images[chosen]
    if pixel == "float32":
        images = images.astype(np.float32) / np.float32(255 if images.dtype == np.uint8 else 1)
    return as_rasters(images), None if labels is None else labels[chosen]


def _digits_as(model: CompactClassifier) -> np.ndarray:
    """Return the bundled digits as pictures that a classifier takes."""
    # Numbers where it takes none. What they show does not matter: an image takes about as many
    # instructions as another.
    import numpy as np

    from visionshare.datasets import load_dataset

    shape = model.image_shape
    if len(shape) == 1 or shape[2:] not in ((), (1,), (3,)):
        rng = np.random.default_rng(0)
        return rng.integers(0, 256, (_RANDOM, *shape), dtype=np.uint8)
    digits = load_dataset(_IMAGES_BY_DEFAULT, "test").images
    if shape[2:] == (3,):
        digits = np.repeat(digits[..., None], 3, axis=-1)
    height, width = shape[:2]
    rasters = [model.preprocessing.apply(digit, (height, width)) for digit in digits]
    return np.stack(rasters).reshape(len(rasters), *shape)


def _compared(
    model: CompactClassifier,
    program: CProgram,
    images: np.ndarray,
    truth: np.ndarray | None,
    labels: np.ndarray,
    scores: np.ndarray,
) -> dict[str, Any]:
    """Return in how many images the core says something else than Python."""
    import numpy as np

    found: dict[str, Any] = {}
    if program.reference is not None:
        expected = program.reference(images)
        found["differences"] = int(np.sum((scores != expected).any(axis=1)))
    found["labels_unlike_floats"] = int(np.sum(model.classes_[labels] != model.predict(images)))
    if truth is not None:
        found["errors"] = int(np.sum(labels != truth))
    return found


def _text(figures: dict[str, Any], target: Target) -> str:
    lines = [
        f"target        {target.name}: {target.description}",
        f"arithmetic    {figures['arithmetic']}",
        f"flash         {figures['flash']:,} bytes: {figures['code']:,} of code, "
        f"{figures['constants']:,} of tables",
        f"ram           {figures['ram']:,} bytes, {figures['work']:,} of them the caller's",
        f"stack         {figures['stack']:,} bytes, the most of {figures['images']:,} images",
        f"instructions  {figures['instructions']:,} an image, at most "
        f"{figures['most_instructions']:,}",
    ]
    if "differences" in figures:
        lines.append(f"scores        unlike Python's in {figures['differences']} images")
    lines.append(
        f"labels        unlike those of floats in {figures['labels_unlike_floats']} images"
    )
    if "errors" in figures:
        lines.append(f"errors        {figures['errors']} of {figures['images']:,} images")
    if "preparation" in figures:
        more = figures["preparation"]
        lines.append(
            f"preparation   {more['flash']:,} bytes of flash and {more['instructions']:,} "
            f"instructions more ({more['frame']})"
        )
        lines.append(
            f"both          {more['ram']:,} bytes of memory with the image, {more['stack']:,} of "
            f"stack; scores unlike Python's in {more['differences']} frames"
        )
    if target.remark:
        lines.append(f"remark        {target.remark}")
    return "\n".join(lines)
