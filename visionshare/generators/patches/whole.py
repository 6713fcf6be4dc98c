"""Patch features in whole numbers: from the bytes of an image to 12 bits each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from visionshare.codegen.c_text import integer_type
from visionshare.codegen.c_writer import WorkArray, raster_values
from visionshare.codegen.quantization import quantize_rows
from visionshare.codegen.whole_numbers import WholeFeatures
from visionshare.errors import InputError
from visionshare.generators.inputs import raster_shape
from visionshare.generators.patches.plan import template_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from visionshare.codegen.c_writer import Writer
    from visionshare.generators.patches.family import PatchTemplates

# Bits of a response, of a mask and of a feature.
_RESPONSE = 16
_MASK = 8
_FEATURE = 12
# From a weighted response to a feature, rounded: products would add up what is cut off.
_SHIFT = _RESPONSE + _MASK - _FEATURE
_HALF = 2 ** (_SHIFT - 1)
# Half of what 32 bits hold: sums in floats, as in c.py, may round them up.
_LARGEST_SUM = 2**30
# Positions of a row that are computed together: on small cores and others; canvases are as wide.
_LANES = 8


@dataclass(frozen=True)
class WholePatches:
    """The tables of a unit."""

    taps: np.ndarray
    shifts: np.ndarray
    windows: np.ndarray
    spans: np.ndarray
    rows: list[np.ndarray]
    cols: list[np.ndarray]
    order: np.ndarray
    scales: np.ndarray
    pads: tuple[int, int]

    def evaluate(self, images: np.ndarray) -> np.ndarray:
        """Return features (n_images, n), int64, of images of bytes."""
        from numpy.lib.stride_tricks import sliding_window_view

        channels, q = self.taps.shape[1:3]
        raster = np.asarray(images).reshape(len(images), *np.shape(images)[1:3], channels)
        (pad_y, pad_x) = self.pads
        canvas = np.pad(raster, ((0, 0), (pad_y, pad_y), (pad_x, pad_x), (0, 0))).astype(np.int64)
        out = np.zeros((len(images), len(self.order)), np.int64)
        first = 0
        for t, y0, y1, x0, x1, n in self.windows:
            seen = canvas[:, y0 : y1 + q - 1, x0 : x1 + q - 1]
            patches = sliding_window_view(seen, (q, q), axis=(1, 2))
            sums = np.einsum("nyxcab,cab->nyx", patches, self.taps[t])
            responses = np.maximum(sums, 0) >> self.shifts[t]
            for j in range(first, first + n):
                top, bottom, left, right = self.spans[j] - [y0, y0, x0, x0]
                inside = responses[:, top:bottom, left:right]
                profile = (inside * self.rows[j][:, None]).max(axis=1) >> _MASK
                best = (profile * self.cols[j]).max(axis=1)
                out[:, j] = (best + _HALF) >> _SHIFT
            first += n
        return out


def whole_patches(family: PatchTemplates, bits: int) -> WholePatches:
    """Return the tables of chosen features."""
    templates = family.templates_.transpose(0, 3, 1, 2)
    taps, tap_scales = quantized_taps(templates, bits)
    rows = taps.reshape(len(taps), -1)
    # The largest response: white where the template is positive, black elsewhere.
    bound = 255 * np.maximum(np.where(rows > 0, rows, 0).sum(axis=1), 1)
    shifts = np.maximum(0, np.ceil(np.log2((bound + 1) / 2**_RESPONSE))).astype(np.int64)
    template, windows, window_of, spans = template_windows(
        family.layout_, family.row_masks_, family.col_masks_
    )
    order = np.argsort(window_of, kind="stable")
    counts = np.bincount(window_of, minlength=len(windows))
    masks: list[list[np.ndarray]] = [[], []]
    scales = (tap_scales * 2.0**shifts)[family.layout_[order, 0]] / 255
    scales *= 2.0 ** (_MASK + _SHIFT)
    for axis, every_mask in enumerate((family.row_masks_, family.col_masks_)):
        for place, j in enumerate(order):
            begin, end = spans[j, 2 * axis : 2 * axis + 2]
            mask = every_mask[family.layout_[j, axis + 1], begin:end].astype(np.float64)
            top = mask.max(initial=1e-30) / (2**_MASK - 1)
            # A position that counts a little still counts.
            masks[axis].append(np.maximum(np.rint(mask / top), mask > 0).astype(np.int64))
            scales[place] *= top
    return WholePatches(
        taps,
        shifts,
        np.column_stack([template, windows, counts]),
        spans[order],
        masks[0],
        masks[1],
        order,
        scales,
        family.pads_,
    )


def features(family: PatchTemplates, writer: Writer) -> WholeFeatures:
    """Return the unit of chosen features, and the same in Python."""
    made = whole_patches(family, 8)
    shape = family.image_shape_
    height, width, channels = raster_shape(shape)
    q = family.patch_size
    pad_y, pad_x = family.pads_
    # Positions beyond the last are computed with it, and not used.
    stride = width + 2 * pad_x + _LANES - 1
    plane = stride * (height + 2 * pad_y) + _LANES
    masks = [mask for pair in zip(made.rows, made.cols, strict=True) for mask in pair]
    values = {
        "size": q,
        **raster_values(raster_shape(shape)),
        "pad_y": pad_y,
        "pad_x": pad_x,
        "stride": stride,
        "plane": plane,
        "n_windows": len(made.windows),
        "most": int(made.windows[:, 5].max()),
        "tap_type": integer_type(made.taps),
        "window_type": integer_type(made.windows),
        "span_type": integer_type(made.spans),
        "mask_bits": _MASK,
        "feature_shift": _SHIFT,
        "half": _HALF,
        "one_shift": int(made.shifts[0]) if len(set(made.shifts.tolist())) == 1 else None,
        "whole_height": height + 2 * pad_y,
    }
    tables = {
        "taps": made.taps,
        "windows": made.windows,
        "spans": made.spans,
        "masks": np.concatenate(masks),
    }
    if values["one_shift"] is None:
        tables["shifts"] = made.shifts
    work = {"canvas": WorkArray("uint8_t", plane * channels)}
    unit = writer.unit(__file__, "patches", tables, values, work, in_flash=True)
    writer.units.append(unit)
    return WholeFeatures(unit, made.order, made.scales, 2**_FEATURE, made.evaluate)


def joined(families: Sequence[PatchTemplates]) -> PatchTemplates | None:
    """Return one family of the features of several."""
    # None where patches or masks differ in kind.
    first = families[0]
    if len({(part.patch_size, part.padding) for part in families}) > 1:
        return None
    made = first.take(np.empty(0, np.int64))
    names = ("templates_", "row_masks_", "col_masks_")
    starts = [np.cumsum([0, *(len(getattr(part, name)) for part in families)]) for name in names]
    made.layout_ = np.concatenate(
        [part.layout_ + start for part, start in zip(families, np.transpose(starts), strict=False)]
    )
    for name in names:
        setattr(made, name, np.concatenate([getattr(part, name) for part in families]))
    made.n_features_ = len(made.layout_)
    return made


def quantized_taps(taps: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return templates as integers, small enough for sums over white images, and their scales."""
    taps = taps.astype(np.float64)
    size = np.abs(taps.reshape(len(taps), -1))
    largest = size.max(axis=1, initial=0)
    ratio = np.maximum(size.sum(axis=1) / np.where(largest > 0, largest, 1), 1)
    # Rounding makes a tap larger by a half at most.
    limits = np.floor((_LARGEST_SUM / 255 - size.shape[1] / 2) / ratio)
    integers, scales = quantize_rows(taps, bits, limits)
    sums = np.abs(integers).reshape(len(integers), -1).sum(axis=1)
    if 255 * sums.max(initial=0) > _LARGEST_SUM:
        raise InputError("quantize", f"templates of {size.shape[1]} values", "smaller templates")
    return integers, scales
