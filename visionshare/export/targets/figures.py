"""What a classifier takes on a core: measured, and held against limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from visionshare.errors import BudgetError, InputError
from visionshare.export.targets.compiling import compile_and_link
from visionshare.export.targets.emulation import EmulatedCore, Run
from visionshare.export.targets.linked import read_image, symbol_size
from visionshare.export.targets.sources import DeviceSources
from visionshare.export.targets.table import Target
from visionshare.export.targets.webassembly import WasmCore

__all__ = ["Limits", "Measured", "TargetFigures", "classify_on_core", "measure", "parse_count"]


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

    Examples
    --------
    >>> figures = TargetFigures("cortex-m4", 9_000, 1_500, 200, 700_000, 710_000, 1_000, 8_000,
    ...     1_500, 100)
    >>> figures.as_dict()["flash"]
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

    def as_dict(self) -> dict[str, Any]:
        """Return plain values by name."""
        return asdict(self)


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
class Limits:
    """What a classifier may take at most; None for anything.

    Parameters
    ----------
    flash, ram, instructions : int, optional
        As in :class:`TargetFigures`; of instructions the mean counts.

    Examples
    --------
    >>> figures = TargetFigures("cortex-m4", 9_000, 1_500, 200, 700_000, 710_000, 1_000, 8_000,
    ...     1_500, 100)
    >>> Limits(flash=10_000).check(figures)
    >>> Limits(ram=1_024).check(figures)
    Traceback (most recent call last):
        ...
    visionshare.errors.BudgetError: cortex-m4: ram is 1,500, more than 1,024
    """

    flash: int | None = None
    ram: int | None = None
    instructions: int | None = None

    def check(self, figures: TargetFigures) -> None:
        """Raise unless all figures are within their limits.

        Raises
        ------
        BudgetError
            That names every figure that is not.
        """
        values = asdict(self)
        beyond = [
            f"{name} is {getattr(figures, name):,}, more than {limit:,}"
            for name, limit in values.items()
            if limit is not None and getattr(figures, name) > limit
        ]
        if beyond:
            raise BudgetError(f"{figures.target}: {'; '.join(beyond)}")


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
    images = _checked_images(sources, images)
    linked, work = _linked(sources, target, optimize)
    core = _core(linked, sources, target, work, counted=True)
    if isinstance(core, WasmCore):
        code, constants = _wasm_sections(linked)
        flash, ram = len(linked), core.static_bytes + work
    else:
        image = read_image(linked)
        code, constants = image.code, image.constants
        flash, ram = image.flash, image.static_ram + work
    runs = [core.classify(one) for one in images]
    _check_labels(runs, sources)
    counts = [run.instructions for run in runs]
    figures = TargetFigures(
        target.name, flash, ram, core.stack_bytes, round(sum(counts) / len(counts)), max(counts),
        code, constants, work, len(runs),
    )  # fmt: skip
    return Measured(figures, *_said(runs))


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
    images = _checked_images(sources, images)
    linked, work = _linked(sources, target, optimize)
    core = _core(linked, sources, target, work, counted=False)
    runs = [core.classify(one) for one in images]
    _check_labels(runs, sources)
    return _said(runs)


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


def _checked_images(sources: DeviceSources, images: np.ndarray) -> np.ndarray:
    images = np.asarray(images)
    if images.dtype != sources.pixel or len(images) == 0 or images[0].size != sources.n_pixels:
        accepted = f"{sources.pixel} images of {sources.n_pixels} values"
        raise InputError("images", (images.shape, str(images.dtype)), accepted)
    return images


def _said(runs: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and scores of all images."""
    return np.array([run.label for run in runs], np.int64), np.stack([run.scores for run in runs])


def parse_count(text: str | int, argument: str = "count") -> int:
    """Return a number that may end in k, M or G.

    Raises
    ------
    InputError
        If it is no such number of at least 1.

    Examples
    --------
    >>> parse_count("1M"), parse_count("0.7 M"), parse_count("1_100_000")
    (1000000, 700000, 1100000)
    """
    found = re.fullmatch(r"([0-9_]+(?:\.[0-9]+)?) ?([kKMG]?)", str(text).strip())
    number = (
        float(found[1]) * 1000 ** " kMG".index(found[2].replace("K", "k") or " ") if found else 0
    )
    if number < 1:
        raise InputError(argument, text, "a number of at least 1, such as 1M or 700k")
    return round(number)


def _check_labels(runs: list[Run], sources: DeviceSources) -> None:
    """Check that the function returns the place of its largest score."""
    from visionshare.errors import ExportError

    for run in runs:
        if not 0 <= run.label < sources.n_classes or run.label != int(np.argmax(run.scores)):
            raise ExportError(f"{sources.name}_classify returned {run.label}, not the best class")


def _wasm_sections(module: bytes) -> tuple[int, int]:
    """Return the bytes of a module's code and data."""
    sizes: Mapping[int, int] = dict(_sections(module))
    return sizes.get(10, 0), sizes.get(11, 0)


def _sections(module: bytes) -> list[tuple[int, int]]:
    """Return number and bytes of each section of a module."""
    at, found = 8, []
    while at < len(module):
        number, at = module[at], at + 1
        size = shift = 0
        while True:
            byte, at = module[at], at + 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        found.append((number, size))
        at += size
    return found
