"""Units in C: weighted sums of all values, many units side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.units.layer import UnitLayer

# Units whose sums are made together.
_LANES = 32


def emit(layer: UnitLayer, writer: Writer, inner: Unit) -> Unit:
    """Return the unit of the sums, which hands them to another unit."""
    n, n_inputs = layer.directions.shape
    # Input after input, all units of each: what a vector of sums reads is side by side.
    tables = {"directions": layer.directions.T, "offsets": layer.offsets}
    if writer.bits is not None:
        # A column's scale is the input's; a row's would leave small inputs out.
        columns = np.sqrt(np.mean(np.square(layer.directions, dtype=np.float64), axis=0))
        columns = np.where(columns > 0, columns, 1.0)
        rows = quantize_rows(layer.directions / columns, writer.bits)
        tables = {
            "directions": rows.integers.T,
            "scales": rows.scales.astype(np.float32),
            "sizes": columns.astype(np.float32),
            "offsets": layer.offsets,
        }
    quantized = writer.bits is not None
    values = {
        "n": n,
        "p": n_inputs,
        "lanes": max(1, min(n, _LANES)),
        "next": inner.name,
        "activation": layer.activation,
        "type": integer_type(tables["directions"]) if quantized else "float",
        "unit": np.float32(1 / 255 if writer.bytes else 1),
        "copied": quantized or writer.bytes,
    }
    work = {"units": WorkArray("float", n)}
    if values["copied"]:
        work["inputs"] = WorkArray("float", n_inputs)
    return writer.unit(__file__, "units", tables, values, work, (inner,))
