"""Few templates in C: cells side by side in vectors, from a band of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_writer import WorkArray, raster_values
from visionshare.codegen.quantization import stored_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.templates.layer import TemplateLayer

# Maps and positions of a cell's row that share pixels in registers; the most cells of a vector.
_TOGETHER = 4
_POSITIONS = 3
_LANES = 16


class _MapGroup(NamedTuple):
    """Maps that are computed together: the first, how many, and where their taps begin."""

    begin: int
    n_maps: int
    taps: int


class _Phase(NamedTuple):
    """Columns with one place in a cell: how many, the first in the image and in the band."""

    n_columns: int
    begin: int
    to: int


def emit_maps(layer: TemplateLayer, pool: int, writer: Writer, part: Unit) -> Unit:
    """Return the unit of templates whose cells lie side by side, which hands them to a unit."""
    _, width, channels = layer.in_shape
    rows, cols, n_maps = layer.out_shape
    stored = stored_rows(layer.templates, writer.bits)
    q = layer.templates.shape[1]
    padding = layer.pads[0]
    together = _TOGETHER * 2 if pool == 1 else _TOGETHER
    length = _vectors(cols) + (pool + q - 2) // pool
    groups = [
        _MapGroup(begin, min(together, n_maps - begin), begin * channels * q * q)
        for begin in range(0, n_maps, together)
    ]
    columns = list(range(pool))
    # Bytes that are far from each other are converted one by one.
    spread = writer.bytes and pool * channels > 2
    values = {
        "part": part.name,
        **raster_values(layer.in_shape),
        "rows": rows,
        "cols": cols,
        "n_maps": n_maps,
        "size": q,
        "pool": pool,
        "padding": padding,
        "length": length,
        "spread": spread,
        "groups": groups,
        "phases": [_phase(place, length, layer, pool) for place in range(pool)],
        "chunks": [columns[i : i + _POSITIONS] for i in range(0, pool, _POSITIONS)],
        "counts": sorted({group.n_maps for group in groups}),
        "tap_type": stored.type,
        "vector": f"{writer.prefix}_vector",
        "unaligned": f"{writer.prefix}_unaligned",
        "unit": np.float32(1 / 255 if writer.bytes else 1),
    }
    taps = stored.values
    tables = {"biases": layer.biases} | stored.scales
    tables["taps"] = np.concatenate(
        [taps[g.begin : g.begin + g.n_maps].transpose(1, 3, 2, 0).ravel() for g in groups]
    )
    work = {
        "maps": WorkArray("float", rows * cols * n_maps),
        "band": WorkArray("float", (pool + q - 1) * channels * pool * length),
    }
    if spread:
        work["line"] = WorkArray("float", width * channels)
    return writer.unit(__file__, "maps", tables, values, work, (part,))


def _vectors(n: int) -> int:
    """Return how many numbers there are in the vectors that n of them need."""
    return -(-n // _LANES) * _LANES


def cells_side_by_side(n_maps: int, cols: int) -> bool:
    """Return whether cells of a row fill vectors at least as well as templates."""
    return n_maps * _vectors(cols) <= cols * _vectors(n_maps)


def _phase(place: int, length: int, layer: TemplateLayer, pool: int) -> _Phase:
    """Return the columns of the image that have a place in the cells."""
    width = layer.in_shape[1]
    padding = layer.pads[1]
    skipped = max(0, -(-(padding - place) // pool))
    begin = skipped * pool + place - padding
    count = max(0, min(-(-(width - begin) // pool), length - skipped))
    return _Phase(count, begin, place * length + skipped)
