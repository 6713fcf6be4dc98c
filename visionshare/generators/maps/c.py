"""Learned maps in C, from a band of rows, and features of another unit on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows
from visionshare.generators.cells.c import CellMaxima, emit_cells

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.maps.family import LearnedMaps

__all__ = ["emit"]

# Maps that share a pixel that was read, and positions of a vector.
_TOGETHER, _LANES = 4, 8
# As many maps fill vectors themselves.
_MANY = 8


class _Group(NamedTuple):
    """Maps that are computed together: the first, how many, and where their taps begin."""

    begin: int
    n_maps: int
    taps: int


def emit(family: LearnedMaps, writer: Writer) -> Unit:
    """Return the unit of the maps, after the unit of the features on them."""
    part = writer.add_on_floats(family.part_)
    if family.n_maps >= _MANY:
        return emit_cells(writer, "maps", _cells(family), inner=part)
    height, width, channels = family.raster_shape
    rows, cols, n_maps = family.map_shape_
    q, pool = family.size, family.pool
    wide = -(-cols * pool // _LANES) * _LANES
    band, stride = pool + q - 1, wide + q - 1
    # Columns of an image beyond the last cell are not read.
    seen = max(0, min(width, stride - family.padding))
    groups = [
        _Group(begin, min(_TOGETHER, n_maps - begin), begin * channels * q * q)
        for begin in range(0, n_maps, _TOGETHER)
    ]
    values = {
        "part": part.name, "height": height, "width": width, "channels": channels,
        "rows": rows, "cols": cols, "n_maps": n_maps, "size": q, "pool": pool,
        "padding": family.padding, "positions": cols * pool, "wide": wide, "band": band,
        "stride": stride, "seen": seen, "groups": groups,
        "counts": sorted({group.n_maps for group in groups}), "tap_type": "float",
        "lanes": _LANES, "unit": np.float32(1 / 255 if writer.bytes else 1),
    }  # fmt: skip
    taps, tables = family.templates_, {"biases": family.biases_}
    if writer.bits is not None:
        # Sums are of floats, whatever the taps are.
        taps, scales = quantize_rows(taps, writer.bits)
        tables["scales"] = scales.astype(np.float32)
        values["tap_type"] = integer_type(taps)
    tables["taps"] = np.concatenate(
        [taps[g.begin : g.begin + g.n_maps].transpose(3, 1, 2, 0).ravel() for g in groups]
    )
    work = {
        "maps": WorkArray("float", rows * cols * n_maps),
        "band": WorkArray("float", channels * band * stride),
        "best": WorkArray("float", min(n_maps, _TOGETHER) * wide),
    }
    return writer.unit(__file__, "maps", tables, values, work, (part,))


def _cells(family: LearnedMaps) -> CellMaxima:
    rows, cols, _ = family.map_shape_
    pads = (family.padding, family.padding)
    return CellMaxima(
        family.raster_shape, pads, family.templates_, family.biases_, rows,
        np.zeros(family.pool, np.int64), np.repeat(np.arange(cols), family.pool),
    )  # fmt: skip
