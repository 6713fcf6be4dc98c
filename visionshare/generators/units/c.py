"""Units in C: weighted sums of the features of another unit of C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.units.family import Units

__all__ = ["emit"]

# Units whose sums are made together.
_LANES = 32


def emit(family: Units, writer: Writer) -> Unit:
    """Return the unit of sums, after that of the features that they are made of."""
    part = writer.add(family.part_)
    n, p = family.directions_.shape
    # Input after input, all units of each: what a vector of sums reads is side by side.
    tables = {"directions": family.directions_.T, "offsets": family.offsets_}
    if writer.bits is not None:
        # A column's scale is the feature's; a row's would leave small features out.
        columns = np.sqrt(np.mean(np.square(family.directions_, dtype=np.float64), axis=0))
        columns = np.where(columns > 0, columns, 1.0)
        rows = quantize_rows(family.directions_ / columns, writer.bits)
        tables = {
            "directions": rows.integers.T, "scales": rows.scales.astype(np.float32),
            "sizes": columns.astype(np.float32), "offsets": family.offsets_,
        }  # fmt: skip
    values = {
        "n": n,
        "p": p,
        "lanes": max(1, min(n, _LANES)),
        "part": part.name,
        "square": family.activation == "square",
    }
    values["type"] = integer_type(tables["directions"]) if writer.bits is not None else "float"
    work = {"inputs": WorkArray("float", max(1, p))}
    return writer.unit(__file__, "units", tables, values, work, (part,))
