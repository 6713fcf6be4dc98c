"""Largest responses of templates in cells in C, band by band of the image's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_writer import WorkArray, raster_values
from visionshare.codegen.quantization import stored_rows
from visionshare.generators.layers.templates.tables import position_step

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.layers.templates.layer import TemplateLayer

# By the lanes of a vector: sums in registers at once, of one or two vectors at each position.
_SUMS = {16: 24, 8: 12}
# Templates whose taps are side by side; on small cores they come by four.
_TOGETHER = 32
_WIDEST = 16
_FOUR = 4


class _Group(NamedTuple):
    """Templates side by side: the first, how many, how many with padding, and the first tap."""

    begin: int
    n_templates: int
    stride: int
    taps: int


class _Shape(NamedTuple):
    """For vectors of so many lanes: rows and columns of a block, and numbers of vectors."""

    lanes: int
    rows: int
    cols: int
    vectors: tuple[int, ...]


def _groups(n: int, taps: int, multiple: int) -> list[_Group]:
    """Return the groups of n templates; zeros pad each to a multiple."""
    groups: list[_Group] = []
    for begin in range(0, n, _TOGETHER):
        count = min(_TOGETHER, n - begin)
        groups.append(_Group(begin, count, -(-count // multiple) * multiple, begin * taps))
    return groups


def _shapes(n: int, rows: int, cols: int) -> list[_Shape]:
    """Return the blocks of n templates, for wide vectors and for others."""
    found = []
    for lanes, most in _SUMS.items():
        # A last pair of vectors whose second would be empty is one vector.
        counts = [min(_TOGETHER, n - begin) for begin in range(0, n, _TOGETHER)]
        pairs = any(count > lanes for count in counts)
        single = any(0 < count % (2 * lanes) <= lanes for count in counts)
        vectors = ((2,) if pairs else ()) + ((1,) if single else ())
        block = _block(rows, cols, most // vectors[0], 8 // vectors[0])
        found.append(_Shape(lanes, *block, vectors))
    return found


def _block(rows: int, cols: int, most: int, least: int) -> tuple[int, int]:
    """Return the rows and columns of positions that are computed together."""
    # The last block of an axis ends with it and computes some positions twice.
    sides = [(r, c) for r in range(1, rows + 1) for c in range(1, cols + 1) if r * c <= most]

    def time(block: tuple[int, int]) -> tuple[int, int]:
        # Sums of few positions wait for each other.
        count = -(-rows // block[0]) * -(-cols // block[1])
        return count * max(least, block[0] * block[1]), -block[0] * block[1]

    return min(sides, key=time)


def emit_cells(layer: TemplateLayer, pool: int, writer: Writer, inner: Unit) -> Unit:
    """Return a unit of maxima in cells, which hands them to another unit as an image."""
    step = position_step(layer.row_cells, layer.col_cells)
    if step > 1:
        pool = 1
    # Regular cells are computed band by band: memory for one row of them is enough.
    bands = layer.out_shape[0] if pool else 1
    row_cells = np.zeros(pool, np.int64) if pool else layer.row_cells
    col_cells = layer.col_cells[::step]
    stored = stored_rows(layer.templates, writer.bits)
    _, width, channels = layer.in_shape
    pad_y, pad_x = layer.pads
    n, q = layer.templates.shape[:2]
    rows = len(row_cells)
    cols = len(col_cells)
    groups = _groups(n, q * q * channels, _WIDEST if writer.vectors else _FOUR)
    # An image of floats without margins is read where it is.
    copied = bool(pad_y or pad_x or writer.bytes)
    cell_rows, cell_cols = (int(c.max()) + 1 for c in (row_cells, col_cells))
    # Vectors may end after the templates.
    stride = -(-n // _WIDEST) * _WIDEST
    values = {
        **raster_values(layer.in_shape),
        "pad_y": pad_y,
        "pad_x": pad_x,
        "size": q,
        "length": q * channels,
        "n": n,
        "bands": bands,
        "rows": rows,
        "cols": cols,
        "step": step,
        "cell_rows": cell_rows,
        "cell_cols": cell_cols,
        "stride": stride,
        "groups": groups,
        "shapes": _shapes(n, rows, cols),
        "copied": copied,
        "tap_type": stored.type,
        "some_without": bool(min(row_cells.min(), col_cells.min()) < 0),
        "vector": f"{writer.prefix}_vector",
        "unaligned": f"{writer.prefix}_unaligned",
        "line": (width + 2 * pad_x if copied else width) * channels,
        "part": inner.name,
        "unit": np.float32(1 / 255 if writer.bytes else 1),
    }
    tables = {"biases": layer.biases} | stored.scales
    sides = [_side_by_side(stored.values, group) for group in groups]
    # The last vector may end after the last tap.
    tables["taps"] = np.concatenate([*sides, np.zeros(_WIDEST, stored.values.dtype)])
    tables |= {"row_cells": row_cells, "col_cells": col_cells}
    work = {
        "maxima": WorkArray("float", bands * cell_rows * cell_cols * n),
        "best": WorkArray("float", cell_rows * cell_cols * stride),
    }
    if copied:
        work["band"] = WorkArray("float", (rows + q - 1) * (width + 2 * pad_x) * channels)
    return writer.unit(__file__, "templates", tables, values, work, (inner,))


def _side_by_side(taps: np.ndarray, group: _Group) -> np.ndarray:
    """Return the taps of a group one after the other, each of all templates side by side."""
    own = taps[group.begin : group.begin + group.n_templates].reshape(group.n_templates, -1)
    rows = np.zeros((group.stride, own.shape[1]), taps.dtype)
    rows[: group.n_templates] = own
    return rows.T.ravel()
