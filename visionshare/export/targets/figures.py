"""What a classifier takes on a core: measured, and held against limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from visionshare.errors import BudgetError, ExportError, InputError
from visionshare.export.targets.avr import run_on_avr
from visionshare.export.targets.compiling import compile_and_link
from visionshare.export.targets.cycles import CYCLE_MODELS
from visionshare.export.targets.device_sources import DeviceSources
from visionshare.export.targets.emulation import CoreRun, EmulatedCore
from visionshare.export.targets.linked import read_image, symbol_size
from visionshare.export.targets.table import Target
from visionshare.export.targets.webassembly import WasmCore, section_sizes


@dataclass(frozen=True)
class TargetFigures:
    """What a classifier takes on a core.

    Parameters
    ----------
    target : str
    flash : int
        Bytes of code, constants and initial values, with all routines that it calls.
    ram : int
        Bytes of static variables and of the caller's work; the image and scores are not in it.
    stack : int
        Bytes of stack, the most of all images.
    instructions : int
        An image, in the mean.
    most_instructions : int
        Of the image that took most.
    code, constants, work : int
        Parts of flash and of ram, in bytes.
    images : int
        How many were classified.
    cycles : int, optional
        An image, in the mean, where the emulator counts them or the core has a model.
    cycles_from : str, optional
        The emulator, or the manual whose timings are the model.
    microjoules : float, optional
        An image, in the mean, by the datasheet of ``chip``.
    chip : str, optional

    Examples
    --------
    >>> figures = TargetFigures("cortex-m4", 9_000, 1_500, 200, 700_000, 710_000, 1_000, 8_000,
    ...     1_500, 100)
    >>> figures.flash
    9000
    """

    target: str
    flash: int
    ram: int
    stack: int
    instructions: int
    most_instructions: int
    code: int
    constants: int
    work: int
    images: int
    cycles: int | None = None
    cycles_from: str | None = None
    microjoules: float | None = None
    chip: str | None = None


@dataclass(frozen=True)
class Measured:
    """Figures, and what the core said of each image.

    Parameters
    ----------
    figures : TargetFigures
    labels : ndarray of shape (n,), int64
    scores : ndarray of shape (n, n_classes), float32 or int32
    """

    figures: TargetFigures
    labels: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class TargetLimits:
    """What a classifier may take at most; None for anything.

    Parameters
    ----------
    flash, ram, instructions : int, optional
        As in :class:`TargetFigures`; of instructions the mean counts.

    Examples
    --------
    >>> figures = {"target": "cortex-m4", "flash": 9_000, "ram": 1_500}
    >>> TargetLimits(flash=10_000).check(figures)
    >>> TargetLimits(ram=1_024).check(figures)
    Traceback (most recent call last):
        ...
    visionshare.errors.BudgetError: cortex-m4: ram is 1,500, more than 1,024
    """

    flash: int | None = None
    ram: int | None = None
    instructions: int | None = None

    def check(self, figures: Mapping[str, Any]) -> None:
        """Raise unless all figures are within their limits.

        Parameters
        ----------
        figures : mapping
            Those of a :class:`TargetFigures` by name.

        Raises
        ------
        BudgetError
            That names every figure that is not.
        """
        beyond = [
            f"{name} is {figures[name]:,}, more than {limit:,}"
            for name, limit in vars(self).items()
            if limit is not None and figures[name] > limit
        ]
        if beyond:
            raise BudgetError(f"{figures['target']}: {'; '.join(beyond)}")


def measure(
    sources: DeviceSources, target: Target, images: np.ndarray, optimize: str = "speed"
) -> Measured:
    """Compile a classifier for a core, let it classify images in emulation, and return its figures.

    Parameters
    ----------
    sources : DeviceSources
    target : Target
    images : ndarray of shape (n, ...)
        One or more, of the sources' pixels.
    optimize : {"size", "speed", "more-speed"}, default "speed"

    Raises
    ------
    InputError
        If the images are of another type or size.
    ExportError
        If a package of the extra ``edge`` is missing, the C does not compile, or the core stops.
    """
    _check_images(sources, images)
    if target.machine == "avr":
        return _measured_on_avr(sources, target, images, optimize)
    linked, work = _linked(sources, target, optimize)
    core = _core(linked, sources, target, work, counted=True)
    runs = _runs(core, sources, images)
    if isinstance(core, WasmCore):
        code, constants = section_sizes(linked)
        flash = len(linked)
        ram = core.static_bytes + work
    else:
        program = read_image(linked)
        code = program.code
        constants = program.constants
        flash = program.flash
        ram = program.static_ram + work
    counts = [run.instructions for run in runs]
    figures = TargetFigures(
        target=target.name,
        flash=flash,
        ram=ram,
        stack=core.stack_bytes,
        instructions=round(sum(counts) / len(counts)),
        most_instructions=max(counts),
        code=code,
        constants=constants,
        work=work,
        images=len(runs),
        **_cycles(target, runs),
    )
    return Measured(figures, *_labels_and_scores(runs))


def classify_on_core(
    sources: DeviceSources, target: Target, images: np.ndarray, optimize: str = "speed"
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (n,), int64, and scores (n, n_classes) of an emulated core.

    As :func:`measure`, without counting: that takes many times as long.

    Raises
    ------
    InputError
        If the images are of another type or size.
    ExportError
        If a package of the extra ``edge`` is missing, the C does not compile, or the core stops.
    """
    _check_images(sources, images)
    if target.machine == "avr":
        return _labels_and_scores(run_on_avr(sources, target, images, optimize).runs)
    linked, work = _linked(sources, target, optimize)
    core = _core(linked, sources, target, work, counted=False)
    return _labels_and_scores(_runs(core, sources, images))


def _measured_on_avr(
    sources: DeviceSources, target: Target, images: np.ndarray, optimize: str
) -> Measured:
    """Return figures of an AVR, whose memory holds all that a call needs."""
    ran = run_on_avr(sources, target, images, optimize)
    counts = [run.instructions for run in ran.runs]
    figures = TargetFigures(
        target.name, ran.flash, ran.ram, ran.stack, round(sum(counts) / len(counts)), max(counts),
        ran.flash - ran.constants, ran.constants, ran.ram, len(counts),
        **_cycles(target, ran.runs),
    )  # fmt: skip
    return Measured(figures, *_labels_and_scores(ran.runs))


def _cycles(target: Target, runs: list[CoreRun]) -> dict[str, Any]:
    """Return the mean cycles and energy of an image; nothing of a core without a model."""
    cycles = [run.cycles for run in runs if run.cycles is not None]
    if not cycles:
        return {}
    model = CYCLE_MODELS[target.name]
    mean = sum(cycles) / len(cycles)
    return {
        "cycles": round(mean),
        "cycles_from": model.source,
        "microjoules": model.microjoules(mean),
        "chip": model.chip or None,
    }


def _linked(sources: DeviceSources, target: Target, optimize: str) -> tuple[bytes, int]:
    """Return the program, and the bytes of the memory that its caller lends."""
    linked, sizes = compile_and_link(sources, target, optimize)
    return linked, symbol_size(sizes, f"{sources.name}_work_size")


def _core(
    linked: bytes, sources: DeviceSources, target: Target, work: int, counted: bool
) -> EmulatedCore | WasmCore:
    if target.machine == "wasm":
        return WasmCore(linked, sources, work)
    return EmulatedCore(read_image(linked), sources, target, work, counted)


def _check_images(sources: DeviceSources, images: np.ndarray) -> None:
    if images.dtype != sources.pixel or len(images) == 0 or images[0].size != sources.n_pixels:
        accepted = f"{sources.pixel} images of {sources.n_pixels} values"
        raise InputError("images", (images.shape, str(images.dtype)), accepted)


def _runs(
    core: EmulatedCore | WasmCore, sources: DeviceSources, images: np.ndarray
) -> list[CoreRun]:
    """Return what a core says of images; a label is the place of the largest score."""
    runs = [core.classify(image) for image in images]
    for run in runs:
        if not 0 <= run.label < sources.n_classes or run.label != int(np.argmax(run.scores)):
            raise ExportError(f"{sources.name}_classify returned {run.label}, not the best class")
    return runs


def _labels_and_scores(runs: list[CoreRun]) -> tuple[np.ndarray, np.ndarray]:
    labels = np.array([run.label for run in runs], np.int64)
    return labels, np.stack([run.scores for run in runs])
