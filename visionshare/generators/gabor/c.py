"""Gabor filters in C: their values as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_text import number
from visionshare.codegen.quantization import quantized

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.gabor.family import GaborBank

__all__ = ["emit"]


def emit(family: GaborBank, writer: Writer) -> Unit:
    """Return the unit of chosen filters."""
    (height, width), shape = family._size, family.image_shape_
    channels = shape[2] if len(shape) == 3 else 1
    ids = np.arange(family.n_features_)
    reach = family._reach(ids)
    values = family._values(ids, reach)
    whole: list[np.ndarray] = []
    layout, scales = np.zeros((len(ids), 7), np.int64), np.ones(len(ids))
    rows, cols = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for places, (ys, xs) in family._by_positions(reach):
        begun = sum(map(len, rows)), sum(map(len, cols))
        layout[places, 3:] = (begun[0], len(ys), begun[1], len(xs))
        rows.append(ys)
        cols.append(xs)
        if family.pooling == "mean":
            scales[places] /= len(ys) * len(xs)
    for f in ids:
        ry, rx = min(int(reach[f]), height - 1), min(int(reach[f]), width - 1)
        layout[f, :3] = sum(map(np.size, whole)), ry, rx
        taps = values[f, height - 1 - ry : height + ry, width - 1 - rx : width + rx]
        if writer.bits is not None:
            held, step = quantized(taps[None], writer.bits)
            taps, scales[f] = held[0], scales[f] * step[0]
        whole.append(taps)
    margin = int(layout[:, 2].max(initial=0))
    unit = 1 / channels / (255 if writer.bytes else 1)
    kind = np.float32 if writer.bits is None else np.int64
    tables: dict[str, np.ndarray] = {
        "layout": layout,
        "rows": np.concatenate(rows),
        "cols": np.concatenate(cols),
        "scales": scales.astype(np.float32),
        "taps": np.concatenate([np.empty(0, kind), *map(np.ravel, whole)]),
    }
    words: dict[str, str | int] = {
        "features": len(ids), "height": height, "width": width, "channels": channels,
        "margin": margin, "stride": width + 2 * margin, "unit": number(np.float32(unit)),
        "pool": "pooled > size ? pooled : size" if family.pooling == "max" else "pooled + size",
    }  # fmt: skip
    most = int(layout[:, 6].max(initial=1))
    work = {"gray": ("float", height * (width + 2 * margin)), "responses": ("float", most)}
    return writer.unit(__file__, writer.name("gabor"), tables, words, work)
