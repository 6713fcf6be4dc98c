"""Gabor filters in C: their values as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_writer import WorkArray
from visionshare.codegen.quantization import quantize_rows

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.gabor.family import GaborBank


class _Positions(NamedTuple):
    """Positions of all filters; spans (n, 4): first row, number of rows, the same of columns."""

    rows: np.ndarray
    cols: np.ndarray
    spans: np.ndarray


class _Filters(NamedTuple):
    """Taps of all filters; spans (n, 3): first tap, reach in rows and in columns."""

    taps: np.ndarray
    scales: np.ndarray
    spans: np.ndarray


def emit(family: GaborBank, writer: Writer) -> Unit:
    """Return the unit of chosen filters."""
    (height, width), shape = family._size, family.image_shape_
    channels = shape[2] if len(shape) == 3 else 1
    reach = family._reach(np.arange(family.n_features_))
    positions = _positions(family, reach)
    filters = _filters(family, reach, writer.bits)
    scales = filters.scales
    if family.pooling == "mean":
        scales = (1 / (positions.spans[:, 1] * positions.spans[:, 3])) * scales
    tables = {
        "layout": np.concatenate([filters.spans, positions.spans], axis=1),
        "rows": positions.rows,
        "cols": positions.cols,
        "scales": scales.astype(np.float32),
        "taps": filters.taps,
    }
    margin = int(filters.spans[:, 2].max(initial=0))
    values = {
        "n_features": family.n_features_, "height": height, "width": width, "channels": channels,
        "margin": margin, "stride": width + 2 * margin, "pooling": family.pooling,
        "unit": np.float32(1 / channels / (255 if writer.bytes else 1)),
    }  # fmt: skip
    work = {
        "gray": WorkArray("float", height * (width + 2 * margin)),
        "responses": WorkArray("float", int(positions.spans[:, 3].max(initial=1))),
    }
    return writer.unit(__file__, "gabor", tables, values, work)


def _positions(family: GaborBank, reach: np.ndarray) -> _Positions:
    """Return the positions of all filters; filters with one set of positions share it."""
    spans = np.zeros((len(reach), 4), np.int64)
    rows = [np.empty(0, np.int64)]
    cols = [np.empty(0, np.int64)]
    for features, (ys, xs) in family._by_positions(reach):
        spans[features] = (sum(map(len, rows)), len(ys), sum(map(len, cols)), len(xs))
        rows.append(ys)
        cols.append(xs)
    return _Positions(np.concatenate(rows), np.concatenate(cols), spans)


def _filters(family: GaborBank, reach: np.ndarray, bits: int | None) -> _Filters:
    """Return the taps of all filters, cut where they reach beyond any image."""
    height, width = family._size
    ids = np.arange(len(reach))
    values = family._values(ids, reach)
    spans = np.zeros((len(ids), 3), np.int64)
    scales = np.ones(len(ids))
    taps = [np.empty(0, np.float32 if bits is None else np.int64)]
    for f in ids:
        ry = min(int(reach[f]), height - 1)
        rx = min(int(reach[f]), width - 1)
        spans[f] = sum(map(len, taps)), ry, rx
        window = values[f, height - 1 - ry : height + ry, width - 1 - rx : width + rx]
        if bits is not None:
            integers, scale = quantize_rows(window[None], bits)
            window = integers[0]
            scales[f] = scale[0]
        taps.append(window.ravel())
    return _Filters(np.concatenate(taps), scales, spans)
