"""Preparation in C, run here: the same rasters as Python's, which is checked."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.datasets.frames import FRAMES
from visionshare.errors import ExportError, InputError
from visionshare.export.c.preparation import (
    PREPARATION_BYTES,
    frame_picture,
    in_color,
    whole_preprocessing,
)
from visionshare.export.c.program import CProgram
from visionshare.export.library_cache import compiled_library

# Frames of the self-test in each format; sides of their parts at most.
_CHECKED = 8
_SIDE = 150


class _Frame(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("height", ctypes.c_uint16), ("width", ctypes.c_uint16),
        ("stride", ctypes.c_uint32), ("format", ctypes.c_int),
    )  # fmt: skip


class _Rectangle(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint16) for name in ("top", "left", "height", "width"))


class CompiledPreparation:
    """The C of a preparation, compiled for this machine."""

    def __init__(self, classifier: CompactClassifier, program: CProgram) -> None:
        self._shape = classifier.image_shape
        prefix = program.name
        main = f"{prefix}_prepare.c"
        names = (f"{prefix}.h", f"{prefix}_prepare.h", main)
        sources = {name: program.files[name] for name in names}
        # Windows removes no library that is loaded: there it stays with the temporary files.
        with tempfile.TemporaryDirectory(prefix="visionshare-", ignore_cleanup_errors=True) as name:
            try:
                loaded = ctypes.CDLL(str(compiled_library(sources, Path(name), main)))
            except OSError as error:
                raise ExportError(f"{error}") from None
        self._prepare = getattr(loaded, f"{prefix}_prepare")
        self._prepare.restype = ctypes.c_int

    def __call__(self, frame: np.ndarray, kind: str, part: tuple[int, int, int, int]) -> np.ndarray:
        """Return the raster of a part of a frame."""
        frame = np.ascontiguousarray(frame)
        height, stride = frame.shape
        width = stride // FRAMES[kind]
        seen = _Frame(frame.ctypes.data, height, width, stride, list(FRAMES).index(kind))
        work = np.empty(PREPARATION_BYTES, np.uint8)
        image = np.full(self._shape, 255, np.uint8)
        done = self._prepare(
            ctypes.byref(seen),
            ctypes.byref(_Rectangle(*part)),
            ctypes.c_void_p(work.ctypes.data),
            ctypes.c_void_p(image.ctypes.data),
        )
        # Nothing was found in a part that is one: the image is black.
        if not done and image.any():
            raise InputError("part", part, f"a part of a frame of {height}×{width} pixels")
        return image


def frame_of_noise(kind: str, height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return a frame that shows a light or dark blot on noisy paper."""
    paper, ink = rng.integers(0, 256, 2)
    frame = np.full((height, width * FRAMES[kind]), paper, np.int64)
    top = rng.integers(0, height)
    left = rng.integers(0, frame.shape[1])
    frame[top : top + height // 3 + 1, left : left + width // 2 + 1] = ink
    noise = int(rng.integers(1, 60))
    return np.clip(frame + rng.integers(-noise, noise, frame.shape), 0, 255).astype(np.uint8)


def check_preparation(classifier: CompactClassifier, program: CProgram) -> int:
    """Compare the C with Python on frames of every format; return how many were compared."""
    prepare = CompiledPreparation(classifier, program)
    steps = whole_preprocessing(classifier)
    rng = np.random.default_rng(0)
    size = (classifier.image_shape[0], classifier.image_shape[1])
    for kind in FRAMES:
        for _ in range(_CHECKED):
            height, width = rng.integers(1, _SIDE, 2).tolist()
            top, left = rng.integers(0, 9, 2).tolist()
            if in_color(classifier) and kind in ("yuyv", "uyvy"):
                # Two pixels share a color.
                width, left = width + width % 2, left + left % 2
            frame = frame_of_noise(kind, height + top + 3, width + left + 2, rng)
            each = FRAMES[kind]
            part = frame[top : top + height, left * each : (left + width) * each]
            expected = steps.apply(frame_picture(classifier, part, kind), size)
            image = prepare(frame, kind, (top, left, height, width))
            if not np.array_equal(image.reshape(expected.shape), expected):
                raise ExportError(f"the C prepares a {kind} frame otherwise than Python")
    return _CHECKED * len(FRAMES)
