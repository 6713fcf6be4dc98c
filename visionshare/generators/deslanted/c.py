"""Deslanted images in C, and the features of another unit on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.deslanted.family import Deslanted

__all__ = ["emit"]

# Of whole numbers in 32 bits.
_LARGEST = 2**31


def emit(family: Deslanted, writer: Writer) -> Unit:
    """Return the unit that deslants, after the unit of the features."""
    part = writer.add(family.part_)
    rows, cols, channels = (*family.image_shape_, 1)[:3]
    values = {
        "rows": rows, "cols": cols, "channels": channels, "part": part.name,
        # Bytes are rounded to the nearest.
        "half": 0.5 if writer.bytes else 0.0,
        "whole": writer.bytes and 255 * channels * cols**2 < _LARGEST,
    }  # fmt: skip
    work = {
        "straight": WorkArray(writer.pixel_type, math.prod(family.image_shape_)),
        "line": WorkArray("float", (cols + 2) * channels),
    }
    return writer.unit(__file__, "deslanted", {}, values, work, (part,))
