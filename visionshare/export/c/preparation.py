"""The C of a classifier's preparation: from a camera's frame to the raster, in whole numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.classifier import CompactClassifier
from visionshare.codegen.c_writer import aligned
from visionshare.codegen.templates import render_file
from visionshare.datasets import locating
from visionshare.datasets.frames import MOST_COLUMNS, color_of_frame, gray_of_frame
from visionshare.datasets.preprocessing import Preprocessing
from visionshare.datasets.whole_preparation import THRESHOLD_BITS
from visionshare.errors import InputError
from visionshare.export.c.program import CProgram

#: Rows and columns of a rectangle at most.
LARGEST_FRAME = 4096
_LARGEST_RASTER = 1024
_FOLDER = Path(__file__).parent
#: Pixels of a part that are kept as they are; a larger part becomes smaller first.
CELLS = 9216
#: Chance of the best class against the second one, below which an answer is unsure.
LEAST_SURE = 0.95
#: Bytes of the memory that a call writes to, at most: runs or sums, sizes, and cells.
PREPARATION_BYTES = aligned(max(12 * MOST_COLUMNS, 8 * locating.MOST_RUNS + 2) + 13 + CELLS, 4)


def with_preparation(classifier: CompactClassifier, program: CProgram) -> CProgram:
    """Return the C of a classifier with that of its preparation, in files of their own."""
    # ``NAME_prepare(frame, rectangle, work, image)`` makes the raster of a part of a camera's
    # frame, the same as ``whole_preprocessing(classifier).apply`` makes of
    # ``frame_picture(classifier, part, kind)``.
    values = _values(classifier, program)
    files = {
        f"{program.name}_prepare.{ending}": render_file(
            _FOLDER / f"preparation.{ending}.j2", values
        )
        for ending in ("h", "c")
    }
    return replace(program, files={**program.files, **files})


def frame_picture(classifier: CompactClassifier, frame: np.ndarray, kind: str) -> np.ndarray:
    """Return the picture of a frame as a core keeps it, gray or in color, in so many bytes."""
    if in_color(classifier):
        return color_of_frame(frame, kind, CELLS // 3)
    return gray_of_frame(frame, kind, CELLS)


def in_color(classifier: CompactClassifier) -> bool:
    """Return whether images are red, green and blue."""
    return classifier.image_shape[2:] == (3,)


def whole_preprocessing(classifier: CompactClassifier) -> Preprocessing:
    """Return a classifier's preprocessing in whole numbers, as a small core computes it."""
    # Single values differ from those of floats, by rounding; there, what is cut out is also
    # located.
    preprocessing = classifier.preprocessing
    if preprocessing.fit == "character":
        accepted = "another fit: ink by a local threshold needs the whole picture in memory"
        raise InputError("preprocessing.fit", preprocessing.fit, accepted)
    located = preprocessing.crop and preprocessing.arithmetic == "float"
    crop = "located" if located else preprocessing.crop
    return replace(preprocessing, crop=crop, arithmetic="whole")


def least_margin(classifier: CompactClassifier) -> float:
    """Return how far the best score of a sure answer is ahead of the second, by the temperature."""
    return float(classifier.temperature * np.log(LEAST_SURE / (1 - LEAST_SURE)))


def _values(classifier: CompactClassifier, program: CProgram) -> dict[str, Any]:
    """Return what the templates say of a preparation."""
    from visionshare import __version__

    shape = classifier.image_shape
    preprocessing = whole_preprocessing(classifier)
    if len(shape) < 2 or shape[2:] not in ((), (1,), (3,)):
        raise InputError("classifier", f"images of shape {shape}", "gray or RGB images")
    if in_color(classifier) and preprocessing.polarity != "as_is":
        raise InputError("preprocessing.polarity", preprocessing.polarity, "'as_is' in color")
    if program.pixel != "uint8":
        raise InputError("pixel", program.pixel, "'uint8' with a preparation")
    if max(shape) > _LARGEST_RASTER:
        raise InputError("classifier", f"images of shape {shape}", f"sides up to {_LARGEST_RASTER}")
    height, width = shape[:2]
    steps = preprocessing.whole_steps((height, width))
    # Twice the moment of a white image, and as much again for its middle.
    largest = 255 * height * width * max(height, width) * 2
    ink = steps.polarity != "as_is"
    margin = least_margin(classifier) / program.score_scale
    return {
        "version": __version__, "prefix": program.name, "macro": program.name.upper(),
        "steps": steps, "ink": ink, "threshold_one": 1 << THRESHOLD_BITS,
        "rows": height - 2 * steps.margin, "cols": width - 2 * steps.margin,
        "least_margin": margin if program.score == "float32" else int(np.ceil(margin)),
        "located": steps.crop == "located", "added": locating.ADDED, "runs": locating.MOST_RUNS,
        "reach": locating.REACH, "smallest": locating.SMALLEST, "least_area": locating.LEAST_AREA,
        "least_contrast": locating.LEAST_CONTRAST,
        "moment": "int32_t" if largest < 2**31 else "int64_t", "largest": LARGEST_FRAME,
        "color": in_color(classifier), "cells": CELLS // 3 if in_color(classifier) else CELLS,
        "most_columns": MOST_COLUMNS,
        "texts": preprocessing.describe(classifier.picture_mode),
    }  # fmt: skip
