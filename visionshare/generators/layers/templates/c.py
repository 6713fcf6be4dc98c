"""Templates in C: templates side by side in vectors, or cells where they fill vectors better."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visionshare.generators.layers.templates.bands import emit_cells
from visionshare.generators.layers.templates.side_by_side import cells_side_by_side, emit_maps
from visionshare.generators.layers.templates.tables import regular_pool

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.templates.layer import TemplateLayer


def emit(layer: TemplateLayer, writer: Writer, inner: Unit) -> Unit:
    """Return the unit of the maxima, which hands them to another unit."""
    _, columns, n = layer.out_shape
    pool = regular_pool(layer.row_cells, layer.col_cells)
    one_pad = layer.pads[0] == layer.pads[1]
    if pool and one_pad and cells_side_by_side(n, columns):
        return emit_maps(layer, pool, writer, inner)
    return emit_cells(layer, pool, writer, inner)
