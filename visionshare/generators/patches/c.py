"""Patch templates in C: feature by feature, in floats or in whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_text import integer_type, number
from visionshare.codegen.quantization import quantized
from visionshare.errors import InputError
from visionshare.generators.patches.masks import mask_spans

if TYPE_CHECKING:
    from visionshare.codegen.c_writer import Unit, Writer
    from visionshare.generators.patches.family import PatchTemplates

__all__ = ["emit"]

# Rows and columns of a tile, as in the C.
_TILE = 8
# Half of what 32 bits hold: the same sums are made in floats, which may round them up.
_LARGEST_SUM = 2**30
_FLOATS = dict.fromkeys(("tap", "weight", "sum"), "float")
_ROW = "const float *row = taps + (plane * {0} + dy) * {0};"
# Turned into floats by themselves: compilers then see the same loop as for floats.
_CONVERTED_ROW = """float row[{0}];
            for (dx = 0; dx < {0}; dx++) {{
                row[dx] = (float)taps[(plane * {0} + dy) * {0} + dx];
            }}"""
_PLANE = "const float *held = taps + plane * {0} * {0};"
_CONVERTED_PLANE = """float held[{0} * {0}];
        for (i = 0; i < {0} * {0}; i++) {{
            held[i] = (float)taps[plane * {0} * {0} + i];
        }}"""


def emit(family: PatchTemplates, writer: Writer) -> Unit:
    """Return the unit of chosen templates under their masks.

    Raises
    ------
    InputError
        If tables are to be quantized and pixels are floats, or sums would not fit.
    """
    layout, row_masks, col_masks = _used_masks(family)
    shape = family.image_shape_
    height, width, channels = {1: (1, *shape, 1), 2: (*shape, 1), 3: shape}[len(shape)]
    q, (pad_y, pad_x) = family.patch_size, family.pads_
    positions = row_masks.shape[1], col_masks.shape[1]
    rows, cols = (
        _reach(layout[:, i : i + 2], n) for i, n in ((2, positions[0]), (5, positions[1]))
    )
    stride = cols + q - 1
    words: dict[str, str | int] = {
        **_FLOATS, "features": len(layout), "size": q, "taps": q * q * channels,
        "height": height, "width": width, "channels": channels, "pad_y": pad_y, "pad_x": pad_x,
        "rows": rows, "cols": cols, "position_rows": positions[0], "position_cols": positions[1],
        "stride": stride, "plane": stride * (rows + q - 1), "span": integer_type(layout),
        "row_of_taps": (_ROW if writer.bits is None else _CONVERTED_ROW).format(q),
        "plane_of_taps": (_PLANE if writer.bits is None else _CONVERTED_PLANE).format(q),
        "response": f"{writer.prefix.upper()}_AS_IT_IS", "masked": "", "shift": 0, "scale": "",
        "unit": f" * {number(np.float32(1 / 255))}" if writer.bytes else "",
    }  # fmt: skip
    taps = family.templates_.transpose(0, 3, 1, 2)
    tables = {
        "layout": layout,
        "row_masks": _widened(row_masks, rows),
        "col_masks": _widened(col_masks, cols),
        "taps": taps,
    }
    name = writer.name("patches")
    if writer.bits is not None:
        _quantize(tables, words, writer, name)
    cells = stride * (rows + q - 1) * channels
    work = {"canvas": (f"{writer.prefix}_cell", cells)}
    return writer.unit(__file__, name, tables, words, work)


def _used_masks(family: PatchTemplates) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each feature's template, row mask and span, column mask and span; masks in use."""
    template, row, col = family.layout_.T
    parts, masks = [template[:, None]], []
    for chosen, held in ((row, family.row_masks_), (col, family.col_masks_)):
        used, place = np.unique(chosen, return_inverse=True)
        spans = mask_spans(held[used]).reshape(-1, 2)
        place = place.reshape(-1)
        parts += [place[:, None], spans[place]]
        masks.append(held[used])
    return np.concatenate(parts, axis=1), masks[0], masks[1]


def _reach(spans: np.ndarray, positions: int) -> int:
    """Return how many positions an axis needs so that tiles over all spans end within it."""
    sizes = -(-(spans[:, 1] - spans[:, 0]) // _TILE) * _TILE
    return int(max(positions, sizes.max(initial=0)))


def _widened(masks: np.ndarray, positions: int) -> np.ndarray:
    wide = np.zeros((len(masks), positions), np.float32)
    wide[:, : masks.shape[1]] = masks
    return wide


def _quantize(
    tables: dict[str, np.ndarray], words: dict[str, str | int], writer: Writer, name: str
) -> None:
    """Replace the tables by whole numbers, and what the C computes with them.

    Sums of taps and bytes are exact in 32 bits. They are shifted to 15 bits, and masks have 15
    bits too, so that no product exceeds 30.
    """
    if not writer.bytes or writer.bits is None:
        raise InputError("input", "float32", "'uint8' where patches are quantized")
    taps = tables["taps"].astype(np.float64)
    flat = np.abs(taps.reshape(len(taps), -1))
    largest = flat.max(axis=1, initial=0)
    ratio = np.maximum(flat.sum(axis=1) / np.where(largest > 0, largest, 1), 1)
    # Rounding makes a tap larger by a half at most.
    room = np.floor((_LARGEST_SUM / 255 - flat.shape[1] / 2) / ratio)
    whole, scale = quantized(taps, writer.bits, room)
    if 255 * np.abs(whole).reshape(len(whole), -1).sum(axis=1).max(initial=0) > _LARGEST_SUM:
        raise InputError("quantize", f"templates of {flat.shape[1]} values", "smaller templates")
    rows = whole.reshape(len(whole), -1)
    # The largest response: white where the template is positive, black elsewhere.
    bound = 255 * np.maximum(np.where(rows > 0, rows, 0).sum(axis=1), 1)
    shifts = np.maximum(0, np.ceil(np.log2((bound + 1) / 2**15))).astype(np.int64)
    layout = tables["layout"]
    scale = (scale * 2.0**shifts)[layout[:, 0]] * 2**15 / 255
    for side, place in (("row_masks", layout[:, 1]), ("col_masks", layout[:, 4])):
        held = tables[side].astype(np.float64)
        tops = held.max(axis=1, initial=1e-30)
        whole_masks = np.rint(held / tops[:, None] * (2**15 - 1)).astype(np.int64)
        # A position that counts a little still counts.
        tables[side] = np.where((held > 0) & (whole_masks == 0), 1, whole_masks)
        scale *= tops[place] / (2**15 - 1)
    tables |= {"taps": whole, "shifts": shifts, "scales": scale.astype(np.float32)}
    macro = writer.prefix.upper()
    words |= {
        "tap": integer_type(whole), "weight": "uint16_t", "sum": "int32_t",
        "response": f"{macro}_SHIFTED", "masked": f"{macro}_HALVED", "unit": "",
        "shift": f"{name}_shifts[f[0]]", "scale": f" * {name}_scales[j]",
    }  # fmt: skip
