"""Deslanted images in C, and the features of another unit on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.deslanted.family import Deslanted

__all__ = ["emit"]


def emit(family: Deslanted, writer: Writer) -> Unit:
    """Return the unit that deslants, after the unit of the features."""
    part = writer.add(family.part_)
    rows, cols, channels = (*family.image_shape_, 1)[:3]
    values = {
        "rows": rows, "cols": cols, "channels": channels, "part": part.name,
        # Bytes are rounded to the nearest.
        "half": 0.5 if writer.bytes else 0.0,
    }  # fmt: skip
    work = {"straight": WorkArray(writer.pixel_type, math.prod(family.image_shape_))}
    return writer.unit(__file__, "deslanted", {}, values, work, (part,))
