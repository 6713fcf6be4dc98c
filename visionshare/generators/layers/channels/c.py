"""Channels in C, one plane after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_writer import WorkArray

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.channels.layer import ChannelLayer


def emit(layer: ChannelLayer, writer: Writer, part: Unit) -> Unit:
    """Return the unit of the channels, which hands them to another unit."""
    formulas = layer.formulas
    height, width, n_values = layer.in_shape
    rows, cols, n_maps = layer.out_shape
    epsilon, factor = layer.scales(writer.bytes)
    local = layer.normalization == "local"
    n_colors = len(formulas.colors)
    n_orientations = len(formulas.orientations)
    values = {
        "part": part.name,
        "height": height,
        "width": width,
        "n_values": n_values,
        "rows": rows,
        "cols": cols,
        "n_maps": n_maps,
        "pool": layer.pool,
        "factor": factor,
        "local": local,
        "window": layer.window,
        "epsilon": epsilon,
        "n_colors": n_colors,
        "gradients": formulas.has_gradients,
        "magnitude_map": formulas.magnitude_map,
        "n_orientations": n_orientations,
        "orientation_map": formulas.orientation_map,
    }
    tables: dict[str, np.ndarray] = {}
    if n_colors:
        tables |= {"colors": formulas.colors, "color_maps": formulas.color_maps}
    if n_orientations:
        tables["orientations"] = formulas.orientations
    size = height * width
    planes = ["plane"] if n_colors or n_orientations else []
    planes += ["along", "down", "size"] if formulas.has_gradients else []
    planes += ["means"] if local else []
    planes += ["squares"] if local and n_colors else []
    work = {plane: WorkArray("float", size) for plane in planes}
    work["line"] = WorkArray("float", width + (layer.window if local else 0))
    work["maps"] = WorkArray("float", rows * cols * n_maps)
    inner = (part,)
    return writer.unit(
        __file__, "channels", tables, values, work, inner, math=local or formulas.has_gradients
    )
