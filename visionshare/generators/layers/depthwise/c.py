"""Depthwise templates in C: row by row, tap after tap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray, raster_values
from visionshare.codegen.quantization import stored_rows
from visionshare.generators.layers.templates.tables import position_step

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.depthwise.layer import DepthwiseLayer


def emit(layer: DepthwiseLayer, writer: Writer, inner: Unit) -> Unit:
    """Return the unit of the maxima, which hands them to another unit."""
    height, width, _ = layer.in_shape
    down, across, n = layer.out_shape
    q = layer.templates.shape[1]
    pad_y, pad_x = layer.pads
    step = position_step(layer.row_cells, layer.col_cells)
    col_cells = layer.col_cells[::step]
    stored = stored_rows(layer.templates, writer.bits)
    tables = {
        "biases": layer.biases,
        "sources": layer.sources,
        "row_cells": layer.row_cells,
        "col_cells": col_cells,
    }
    tables |= stored.scales
    tables["taps"] = stored.values.ravel()
    values = {
        **raster_values(layer.in_shape),
        "pad_y": pad_y,
        "pad_x": pad_x,
        "n": n,
        "size": q,
        "step": step,
        "rows": len(layer.row_cells),
        "cols": len(col_cells),
        "cells": down * across,
        "across": across,
        "part": inner.name,
        "tap_type": stored.type,
        "line": width + 2 * pad_x,
        "unit": np.float32(1 / 255 if writer.bytes else 1),
    }
    work = {
        "maxima": WorkArray("float", down * across * n),
        "plane": WorkArray("float", (height + 2 * pad_y) * (width + 2 * pad_x)),
        "sums": WorkArray("float", len(col_cells)),
    }
    return writer.unit(__file__, "depthwise", tables, values, work, (inner,))
