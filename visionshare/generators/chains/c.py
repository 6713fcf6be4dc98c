"""Chains in C: depth first, so that of each layer one map is held at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows
from visionshare.generators.chains.layers import Layer, cell_bounds

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.chains.family import Chains

__all__ = ["emit"]

# Positions of a vector.
_LANES = 8


def emit(family: Chains, writer: Writer) -> Unit:
    """Return the unit of the chains."""
    family = family.take(np.arange(family.n_features_))
    height, width, channels = family.raster_shape
    sides = [(height, width), *family.map_shapes]
    layers: list[dict[str, Any]] = []
    tables: dict[str, np.ndarray] = {}
    for number, own in enumerate(family.layers_, 1):
        taps, of_layer = _taps(own, writer.bits)
        tables |= {f"{name}{number}": table for name, table in of_layer.items()}
        (from_rows, from_cols), (rows, cols) = sides[number - 1], sides[number]
        layers.append({
            "number": number, "from_rows": from_rows, "from_cols": from_cols, "rows": rows,
            "cols": cols, "pool": own.pool, "size": own.templates.shape[1],
            "channels": own.templates.shape[3], "tap_type": taps,
        })  # fmt: skip
    values = {
        "height": height, "width": width, "channels": channels, "layers": layers,
        "grid": family.grid, "lanes": _LANES, "unit": np.float32(1 / 255 if writer.bytes else 1),
    }  # fmt: skip
    # What a layer sees; vectors read a little past the last row.
    seen = [layer["channels"] * layer["from_rows"] * layer["from_cols"] for layer in layers]
    work = {f"map{i}": WorkArray("float", size + _LANES) for i, size in enumerate(seen)}
    rows, cols = sides[-1]
    work[f"map{len(layers)}"] = WorkArray("float", rows * cols)
    widest = max(layer["cols"] * layer["pool"] for layer in layers)
    work["best"] = WorkArray("float", -(-widest // _LANES) * _LANES)
    return writer.unit(__file__, "chains", tables | _cells(family), values, work)


def _taps(own: Layer, bits: int | None) -> tuple[str, dict[str, np.ndarray]]:
    """Return the C type of the taps of a layer, and its tables."""
    taps = own.templates.transpose(0, 3, 1, 2)
    tables = {"taps": taps, "biases": own.biases, "starts": own.starts}
    if bits is None:
        return "float", tables
    # Sums are of floats, whatever the taps are.
    tables["taps"], scales = quantize_rows(taps, bits)
    return integer_type(tables["taps"]), tables | {"scales": scales.astype(np.float32)}


def _cells(family: Chains) -> dict[str, np.ndarray]:
    """Return tables of the features, by chain, and of the cells of the grid."""
    chain, cell = family.layout_.T
    order = np.argsort(chain, kind="stable")
    rows, cols = (cell_bounds(side, family.grid) for side in family.map_shapes[-1])
    n_chains = len(family.layers_[-1].templates)
    return {
        "features": order, "cells_of": cell[order],
        "chains": np.searchsorted(chain[order], np.arange(n_chains + 1)),
        "rows": rows, "cols": cols,
    }  # fmt: skip
