"""Local binary patterns in C: patterns of whole numbers for bytes, counted cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.lbp.family import LocalBinaryPatterns


def emit(family: LocalBinaryPatterns, writer: Writer) -> Unit:
    """Return the unit of chosen codes of cells."""
    height, width, channels = (*family.image_shape_, 1)[:3]
    rows, cols, weights, starts = family.circle
    cell, code = family.cells_and_codes(np.arange(family.n_features_))
    used = np.unique(cell)
    order = np.argsort(cell, kind="stable")
    begins = np.searchsorted(cell[order], used)
    tables: dict[str, np.ndarray] = {
        "offsets": rows * width + cols,
        # Whole for bytes: cores without floats compare too.
        "weights": (weights * 4096).astype(np.int64) if writer.bytes else weights,
        "starts": starts,
        "codes": family.code_of_pattern,
        "cells": family.cells_[used],
        "begins": np.append(begins, len(order)),
        "order": order,
        "bins": code[order],
        "scales": (1 / family.sizes[used]).astype(np.float32),
    }
    number = "int32_t" if writer.bytes else "float"
    values = {
        "size": height * width, "width": width, "channels": channels, "cells": len(used),
        "points": int(family.points), "n_codes": family.n_codes, "number": number,
    }  # fmt: skip
    work = {
        "gray": WorkArray(number, height * width),
        "counts": WorkArray("int32_t", family.n_codes),
    }
    return writer.unit(__file__, "lbp", tables, values, work)
