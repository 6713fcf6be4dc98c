"""What the preparation of a classifier's images takes on a core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import visionshare.export.c as of_c
from visionshare.classifier import CompactClassifier
from visionshare.codegen.templates import render_file
from visionshare.datasets.frames import FRAMES, gray_of_frame
from visionshare.export.c.program import CProgram
from visionshare.export.preparation import frame_of_noise
from visionshare.export.targets.figures import measure
from visionshare.export.targets.sources import DeviceSources, device_sources
from visionshare.export.targets.table import Target

__all__ = ["PreparationFigures", "measure_preparation", "on_frame_sources"]

# Frames that are prepared: how many, their format and their side.
_COUNT, _KIND, _SIDE = 4, "yuyv", 96


@dataclass(frozen=True)
class PreparationFigures:
    """What a preparation takes on a core, beside the classification.

    Parameters
    ----------
    frame : str
        Format and size of the frames.
    flash, instructions : int
        More than the classification alone.
    ram, stack : int
        Of both, with the image between them; they share the caller's memory.
    differences : int
        Frames of which the core says something else than Python.
    """

    frame: str
    flash: int
    instructions: int
    ram: int
    stack: int
    differences: int


def on_frame_sources(
    classifier: CompactClassifier, program: CProgram, kind: str, height: int, width: int
) -> DeviceSources:
    """Return C that prepares a whole frame and classifies it."""
    from visionshare import __version__

    prefix, stride = program.name, FRAMES[kind] * width
    values = {
        "version": __version__, "prefix": prefix, "macro": prefix.upper(), "height": height,
        "width": width, "stride": stride, "format": list(FRAMES).index(kind),
    }  # fmt: skip
    folder = Path(of_c.__path__[0])
    files = dict(device_sources(classifier, program).files)
    for ending in ("h", "c"):
        files[f"{prefix}_prepare.{ending}"] = program.files[f"{prefix}_prepare.{ending}"]
        made_of = folder / f"on_frame.{ending}.j2"
        files[f"{prefix}_on_frame.{ending}"] = render_file(made_of, values)
    k = len(classifier.classes_)
    return DeviceSources(f"{prefix}_on_frame", files, "uint8", stride * height, k, program.score)


def measure_preparation(
    classifier: CompactClassifier, program: CProgram, target: Target, optimize: str = "speed"
) -> PreparationFigures:
    """Return what a core takes from frames to scores, and whether it says what Python says.

    Parameters
    ----------
    classifier : CompactClassifier
    program : CProgram
        Of :func:`visionshare.export.c.preparation.with_preparation`.
    target : Target
    optimize : {"size", "speed", "more-speed"}, default "speed"

    Raises
    ------
    ExportError
        If a package of the extra ``edge`` is missing, the C does not compile, or the core stops.
    """
    rng, shape = np.random.default_rng(0), classifier.image_shape
    frames = np.stack([frame_of_noise(_KIND, _SIDE, _SIDE, rng) for _ in range(_COUNT)])
    images = np.stack(
        [
            classifier.preprocessing.apply(gray_of_frame(frame, _KIND), (shape[0], shape[1]))
            for frame in frames
        ]
    ).reshape(_COUNT, *shape)
    alone = measure(device_sources(classifier, program), target, images, optimize)
    sources = on_frame_sources(classifier, program, _KIND, _SIDE, _SIDE)
    both = measure(sources, target, frames, optimize)
    # The same core: scores of floats are the same too.
    differences = int(np.sum((alone.scores != both.scores).any(axis=1)))
    figures = both.figures
    return PreparationFigures(
        f"{_KIND}, {_SIDE}x{_SIDE}", figures.flash - alone.figures.flash,
        figures.instructions - alone.figures.instructions, figures.ram, figures.stack, differences,
    )  # fmt: skip
