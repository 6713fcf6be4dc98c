"""Pixels in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.pixels.family import Pixels


def emit(family: Pixels, writer: Writer) -> Unit:
    """Return the unit of chosen pixels."""
    unit = np.float32(1 / 255) if writer.bytes else np.float32(1)
    values = {"n_features": family.n_features_, "unit": unit}
    return writer.unit(__file__, "pixels", {"inputs": family.ids_}, values)
