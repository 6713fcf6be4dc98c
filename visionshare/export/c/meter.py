"""The C that reads a meter: the exported classifier of characters, and one file for the meter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from visionshare.class_labels import class_names
from visionshare.classifier import CompactClassifier
from visionshare.codegen.templates import render_file
from visionshare.datasets import characters, ink
from visionshare.datasets.glyphs import OTHER
from visionshare.datasets.preprocessing import PRINTED_SIZE
from visionshare.errors import InputError
from visionshare.export.c.program import CProgram
from visionshare.reading import meter as python
from visionshare.reading.line_reader import reader_preprocessing
from visionshare.reading.meter_file import Meter, read_meter

_FOLDER = Path(__file__).parent
# Windows are looked at as a whole; larger ones would be reduced first, as pages are.
_MAX_SIDE = 255


def with_meter(classifier: CompactClassifier, program: CProgram, meter: Path) -> CProgram:
    """Return a program with the C that reads a meter."""
    description = read_meter(meter)
    names = list(map(str, class_names(classifier.classes_)))
    if not set("0123456789") <= set(names) or classifier.image_shape != PRINTED_SIZE:
        raise InputError("classifier", names, "a classifier of 28×28 characters with ten digits")
    if program.pixel != "uint8":
        raise InputError("--pixel", program.pixel, "'uint8' with --meter")
    for name in ("digits", "marks"):
        largest = max(
            (side for region in getattr(description, name) for side in region[2:]), default=0
        )
        if largest > _MAX_SIDE:
            raise InputError(name, largest, f"regions of at most {_MAX_SIDE} pixels a side")
    images = python.mark_images(description, meter.parent)
    values = _values(classifier, program, description, names)
    if images:
        values["mark_images"] = np.concatenate([image.ravel() for image in images])
    made = {
        f"{program.name}_meter.h": render_file(_FOLDER / "meter.h.j2", values),
        f"{program.name}_meter.c": render_file(_FOLDER / "meter.c.j2", values),
        f"{program.name}_meter_example.c": render_file(_FOLDER / "meter_example.c.j2", values),
    }
    return replace(program, files={**program.files, **made})


def _values(
    classifier: CompactClassifier, program: CProgram, meter: Meter, names: list[str]
) -> dict[str, object]:
    """Return what the templates show: the description, the reader's limits, digits of fonts."""
    import cv2

    from visionshare import __version__

    glyphs = [glyph for font in python.drawn_digits() for glyph in font]
    rows = max(glyph.shape[0] for glyph in glyphs)
    glyphs = [cv2.resize(glyph, (glyph.shape[1], rows)) for glyph in glyphs]
    largest = max((w * h for _, _, w, h in meter.digits), default=1)
    # What is searched for a mark takes the place of four bytes for each pixel of a window.
    around = [(w + 2 * meter.search) * (h + 2 * meter.search) for _, _, w, h in meter.marks]
    return {
        **vars(meter), "version": __version__, "prefix": program.name,
        "back": cv2.invertAffineTransform(python.turn_of(meter)).tolist(),
        "columns": [names.index(digit) for digit in "0123456789"],
        "other": names.index(OTHER) if OTHER in names else None,
        "temperature": classifier.temperature, "score_scale": program.score_scale,
        "glyph_rows": rows, "glyph_widths": [glyph.shape[1] for glyph in glyphs],
        "glyphs": np.concatenate([glyph.ravel() for glyph in glyphs]),
        # A piece with its border, and a digit of a font in the largest window.
        "window_pixels": max(2 * largest + 4096, max(around, default=0) // 4 + 1),
        "side_of_windows": max((max(region[2:]) for region in meter.digits), default=1),
        "unit": 10.0**-meter.decimals,
        "margin": reader_preprocessing(classifier).margin_in(PRINTED_SIZE),
        "min_contrast": ink._MIN_CONTRAST, "min_difference": ink._MIN_DIFFERENCE,
        "min_skewness": ink._MIN_SKEWNESS, "min_lightest": characters._MIN_LIGHTEST,
        "min_height": python._MIN_HEIGHT, "inner": python._INNER, "min_pixels": python._MIN_PIXELS,
        "needle_contrast": python._MIN_CONTRAST, "cut": python._CUT, "at_edge": python._AT_EDGE,
        "sharpness": python._SHARPNESS, "floor": python._FLOOR, "least": python._LEAST,
        "max_error": python._MAX_ERROR, "stretch": python._STRETCH,
    }  # fmt: skip
