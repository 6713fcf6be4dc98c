"""Largest responses of templates in cells in C: for maps of an image, and for patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer

__all__ = ["CellMaxima", "emit_cells"]

# Positions whose sums are in registers at once, with 16 templates side by side.
_MOST, _SIDE_BY_SIDE = 10, 16


class CellMaxima(NamedTuple):
    """What is computed, band by band of the image's rows.

    Parameters
    ----------
    image_shape : tuple of int
        Rows, columns and channels.
    pads : tuple of int
        Zero rows above and below, and zero columns at the sides.
    templates : ndarray of shape (n, q, q, C), float32
    biases : ndarray of shape (n,), float32
    bands : int
        Bands of positions, one after the other, each with the same cells.
    row_cells, col_cells : ndarray of int
        The cell of each row of positions of a band, and of each column; −1 for none.
    """

    image_shape: tuple[int, int, int]
    pads: tuple[int, int]
    templates: np.ndarray
    biases: np.ndarray
    bands: int
    row_cells: np.ndarray
    col_cells: np.ndarray


class _Run(NamedTuple):
    """Templates side by side: the first, how many, with those of zeros, and the first tap.

    ``groups`` of as many follow each other.
    """

    begin: int
    n_templates: int
    width: int
    taps: int
    groups: int


def _runs(n: int, taps: int) -> list[_Run]:
    """Return templates by sixteen, and what is left by eight and four.

    Examples
    --------
    >>> [(run.begin, run.n_templates, run.width, run.groups) for run in _runs(43, 9)]
    [(0, 32, 16, 2), (32, 8, 8, 1), (40, 3, 4, 1)]
    """
    runs: list[_Run] = []
    begin = 0
    while begin < n:
        left = n - begin
        width = _SIDE_BY_SIDE if left > 12 else 8 if left > 4 else 4
        groups = max(1, left // width)
        count = min(left, groups * width)
        runs.append(_Run(begin, count, width, begin * taps, groups))
        begin += count
    return runs


def _block(rows: int, cols: int) -> tuple[int, int]:
    """Return the rows and columns of positions that are computed together.

    The last block of an axis ends with it and computes some positions twice.

    Examples
    --------
    >>> _block(2, 10), _block(2, 26), _block(3, 3), _block(1, 1)
    ((1, 10), (1, 9), (3, 3), (1, 1))
    """
    sides = [(r, c) for r in range(1, rows + 1) for c in range(1, cols + 1) if r * c <= _MOST]

    def time(block: tuple[int, int]) -> tuple[int, int]:
        # Sums of few positions wait for each other.
        count = -(-rows // block[0]) * -(-cols // block[1])
        return count * max(8, block[0] * block[1]), -block[0] * block[1]

    return min(sides, key=time)


def emit_cells(
    writer: Writer,
    kind: str,
    spec: CellMaxima,
    inner: Unit | None = None,
    places: np.ndarray | None = None,
) -> Unit:
    """Return a unit of maxima in cells.

    Parameters
    ----------
    writer : Writer
    kind : str
        What its name is made from.
    spec : CellMaxima
    inner : Unit, optional
        The unit of the features on the maxima (cells, templates), as an image.
    places : ndarray of int, optional
        Where each feature is among the maxima, when there is no inner unit.
    """
    height, width, channels = spec.image_shape
    (pad_y, pad_x), (n, q) = spec.pads, spec.templates.shape[:2]
    rows, cols = len(spec.row_cells), len(spec.col_cells)
    block_rows, block_cols = _block(rows, cols)
    runs = _runs(n, q * q * channels)
    # An image of floats without margins is read where it is.
    copied = bool(pad_y or pad_x or writer.bytes)
    cell_rows, cell_cols = (int(c.max()) + 1 for c in (spec.row_cells, spec.col_cells))
    values = {
        "height": height, "width": width, "channels": channels, "pad_y": pad_y, "pad_x": pad_x,
        "size": q, "length": q * channels, "n": n, "bands": spec.bands, "rows": rows, "cols": cols,
        "cell_rows": cell_rows, "cell_cols": cell_cols, "block_rows": block_rows,
        "block_cols": block_cols, "runs": runs, "copied": copied,
        "some_without": bool(min(spec.row_cells.min(), spec.col_cells.min()) < 0),
        "shapes": sorted({run.width for run in runs}), "tap_type": "float",
        "line": (width + 2 * pad_x if copied else width) * channels,
        "part": inner.name if inner else "", "n_features": 0 if places is None else len(places),
        "unit": np.float32(1 / 255 if writer.bytes else 1),
    }  # fmt: skip
    taps, tables = spec.templates, {"biases": spec.biases}
    if writer.bits is not None:
        # Sums are of floats, whatever the taps are.
        taps, scales = quantize_rows(taps, writer.bits)
        tables["scales"] = scales.astype(np.float32)
        values["tap_type"] = integer_type(taps)
    tables["taps"] = np.concatenate([_side_by_side(taps, run) for run in runs])
    tables |= {"row_cells": spec.row_cells, "col_cells": spec.col_cells}
    if places is not None:
        tables["places"] = places
    work = {"maxima": WorkArray("float", spec.bands * cell_rows * cell_cols * n)}
    if copied:
        work["band"] = WorkArray("float", (rows + q - 1) * (width + 2 * pad_x) * channels)
    return writer.unit(__file__, kind, tables, values, work, (inner,) if inner else ())


def _side_by_side(taps: np.ndarray, run: _Run) -> np.ndarray:
    """Return the taps of a run one after the other, each of all templates side by side."""
    own = taps[run.begin : run.begin + run.n_templates].reshape(run.n_templates, -1)
    rows = np.zeros((run.groups * run.width, own.shape[1]), taps.dtype)
    rows[: run.n_templates] = own
    return rows.reshape(run.groups, run.width, -1).transpose(0, 2, 1).ravel()
