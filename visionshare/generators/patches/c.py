"""Patch templates in C: feature by feature, in floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray, raster_values
from visionshare.codegen.quantization import quantize_rows
from visionshare.generators.inputs import raster_shape
from visionshare.generators.patches.masks import mask_spans

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.patches.family import PatchTemplates

# Rows and columns of a tile, as in the template.
_TILE = 8


class _Tables(NamedTuple):
    """What a unit computes with."""

    layout: np.ndarray
    row_masks: np.ndarray
    col_masks: np.ndarray
    taps: np.ndarray


def emit(family: PatchTemplates, writer: Writer) -> Unit:
    """Return the unit of chosen templates under their masks."""
    shape = family.image_shape_
    channels = raster_shape(shape)[2]
    q = family.patch_size
    pad_y, pad_x = family.pads_
    plain = _tables(family)
    rows = plain.row_masks.shape[1]
    cols = plain.col_masks.shape[1]
    stride = cols + q - 1
    plane = (cols + q - 1) * (rows + q - 1)
    values = {
        "n_features": len(plain.layout),
        "size": q,
        "n_taps": q * q * channels,
        **raster_values(raster_shape(shape)),
        "pad_y": pad_y,
        "pad_x": pad_x,
        "rows": rows,
        "cols": cols,
        "stride": stride,
        "plane": plane,
        "position_rows": family.row_masks_.shape[1],
        "position_cols": family.col_masks_.shape[1],
        "layout_type": integer_type(plain.layout),
        "tap_type": "float",
        "mask_type": "float",
        "unit": np.float32(1 / 255 if writer.bytes else 1),
    }
    tables: dict[str, np.ndarray] = plain._asdict()
    if writer.bits is not None:
        # Sums are of floats, whatever the tables hold.
        tables = _rounded(plain, writer.bits)
        values |= {"tap_type": integer_type(tables["taps"]), "mask_type": "uint16_t"}
    work = {"canvas": WorkArray("float", plane * channels)}
    return writer.unit(__file__, "patches", tables, values, work)


def _tables(family: PatchTemplates) -> _Tables:
    """Return the tables in floats, with the masks in use."""
    template, row, col = family.layout_.T
    columns = [template[:, None]]
    masks = []
    for chosen, every_mask in ((row, family.row_masks_), (col, family.col_masks_)):
        used, index = np.unique(chosen, return_inverse=True)
        index = index.reshape(-1)
        spans = mask_spans(every_mask[used]).reshape(-1, 2)[index]
        columns += [index[:, None], spans]
        masks.append(_widened(every_mask[used], spans))
    layout = np.concatenate(columns, axis=1)
    return _Tables(layout, masks[0], masks[1], family.templates_.transpose(0, 3, 1, 2))


def _widened(masks: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Return masks with zeros after them, so that tiles over all spans end within."""
    sizes = -(-(spans[:, 1] - spans[:, 0]) // _TILE) * _TILE
    wide = np.zeros((len(masks), max(masks.shape[1], int(sizes.max(initial=0)))), np.float32)
    wide[:, : masks.shape[1]] = masks
    return wide


def _rounded(tables: _Tables, bits: int) -> dict[str, np.ndarray]:
    """Return the tables in integers for sums in floats, with the scales of features."""
    taps, tap_scales = quantize_rows(tables.taps, bits)
    row_masks, row_scales = _quantized_masks(tables.row_masks)
    col_masks, col_scales = _quantized_masks(tables.col_masks)
    template, row, col = tables.layout[:, [0, 1, 4]].T
    scales = tap_scales[template] * row_scales[row] * col_scales[col]
    return {
        "layout": tables.layout,
        "row_masks": row_masks,
        "col_masks": col_masks,
        "taps": taps,
        "scales": scales.astype(np.float32),
    }


def _quantized_masks(masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return masks as integers of 15 bits, and their scales."""
    masks = masks.astype(np.float64)
    tops = masks.max(axis=1, initial=1e-30)
    integers = np.rint(masks / tops[:, None] * (2**15 - 1)).astype(np.int64)
    # A position that counts a little still counts.
    return np.where((masks > 0) & (integers == 0), 1, integers), tops / (2**15 - 1)
