"""Residual sums in C: the unit of the templates, then a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray
from visionshare.generators.layers.picked import picked
from visionshare.generators.layers.templates.c import emit as emit_templates

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.residual.layer import ResidualLayer


def emit(layer: ResidualLayer, writer: Writer, inner: Unit) -> Unit:
    """Return the unit of the sums, which hands them to another unit."""
    n = int(np.prod(layer.out_shape))
    # 1) the templates, whose maxima become features
    with writer.seeing(floats=True):
        kept = picked(writer, None, np.float32(1), n)
    writer.units.append(kept)
    templates = emit_templates(layer, writer, kept)
    writer.units.append(templates)
    # 2) what they see is added
    values = {
        "n": n,
        "part": templates.name,
        "next": inner.name,
        "unit": np.float32(1 / 255 if writer.bytes else 1),
    }
    tables = {"middles": layer.middles}
    work = {"sums": WorkArray("float", n)}
    return writer.unit(__file__, "residual", tables, values, work, (templates, inner))
