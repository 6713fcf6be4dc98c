"""Deslanted images in C."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.deslant.layer import DeslantLayer

# Of whole numbers in 32 bits.
_LARGEST = 2**31


def emit(layer: DeslantLayer, writer: Writer, part: Unit) -> Unit:
    """Return the unit that deslants, and hands the image to another unit."""
    rows, cols, channels = layer.in_shape
    values = {
        "rows": rows,
        "cols": cols,
        "channels": channels,
        "part": part.name,
        # Bytes are rounded to the nearest.
        "half": 0.5 if writer.bytes else 0.0,
        "whole": writer.bytes and 255 * channels * cols**2 < _LARGEST,
    }
    work = {
        "straight": WorkArray(writer.pixel_type, math.prod(layer.in_shape)),
        "line": WorkArray("float", (cols + 2) * channels),
    }
    return writer.unit(__file__, "deslanted", {}, values, work, (part,))
