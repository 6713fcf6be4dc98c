"""Stumps in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.stumps.family import Stumps


def emit(family: Stumps, writer: Writer) -> Unit:
    """Return the unit of chosen stumps."""
    limits = family.thresholds_
    if writer.bytes:
        # The largest byte at or below the threshold, -1 for none, compared as the library does.
        values = np.arange(256) / 255
        limits = np.searchsorted(values, limits.astype(np.float64), side="right") - 1
    tables = {"inputs": family.inputs_, "limits": limits}
    return writer.unit(__file__, "stumps", tables, {"n_features": family.n_features_})
