"""Straightened images in C, and the features of another unit on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from visionshare.export.c.text import number

if TYPE_CHECKING:
    from visionshare.export.c.units import Unit, Writer
    from visionshare.generators.straightened import Straightened

__all__ = ["emit"]


def emit(family: Straightened, writer: Writer) -> Unit:
    """Return the unit that straightens, after the unit of the features."""
    part = writer.add(family.part_)
    rows, cols, channels = (*family.image_shape_, 1)[:3]
    words: dict[str, str | int] = {
        "ROWS": rows, "COLS": cols, "CHANNELS": channels, "PART": part.name,
        # Bytes are rounded to the nearest.
        "HALF": number(0.5 if writer.bytes else 0.0),
    }  # fmt: skip
    work = {"straight": (f"{writer.prefix}_pixel", math.prod(family.image_shape_))}
    return writer.unit(__file__, writer.name("straightened"), {}, words, work, (part,))
