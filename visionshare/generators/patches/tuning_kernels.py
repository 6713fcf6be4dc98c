"""Kernels that tell how templates have to move: gradients through the maxima of patch features."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.layers.templates.responses import (
    Canvas,
    aligned,
    canvas_of,
    cut_out,
    draw,
)
from visionshare.generators.layers.templates.sums import (
    Entries,
    Rows,
    add_together,
    empty_entries,
    filled,
)
from visionshare.generators.patches.record_kernels import margin, pixel_unit

__all__ = ["add_templates", "mask_gradients", "template_gradients"]

# Floats of images whose patches are summed together: they stay in the first cache.
CACHED = 6144


@njit(cache=True, nogil=True)
def _position_starts(rows: int, columns: int, line: int, channels: int) -> np.ndarray:
    """Return where the patch of each position begins in a canvas."""
    starts = np.empty(rows * columns, np.int64)
    for y in range(rows):
        for x in range(columns):
            starts[y * columns + x] = y * line + x * channels
    return starts


@njit(cache=True, nogil=True)
def template_gradients(
    images: np.ndarray,
    maxima: np.ndarray,
    G: np.ndarray,
    features: np.ndarray,
    starts: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write Σ_i Σ_f G_if · mask_f(p_if) · patch_i(p_if) over the features f of each template."""
    # The derivative of a maximum is that of the response where it is attained, so that an image
    # costs a patch a feature.
    # images: (n, H, W · C), uint8 or float32
    # maxima: (n, n_features), int32
    # G: (n, n_features), float32
    # features: (n_features, 3), int64
    # starts: (n_templates + 1,), int64
    # row_masks, col_masks: (n_masks, positions), float32
    # out: (n_templates, q, q · C), float32
    n, height, width = images.shape
    n_templates, q, length = out.shape
    rows = row_masks.shape[1]
    cols = col_masks.shape[1]
    channels = length // q
    pad_y = margin(height, rows, q)
    pad_x = margin(width // channels, cols, q)
    one = canvas_of(height, width // channels, channels, pad_y, pad_x)
    together = max(1, CACHED // one.pixels.size)
    size = one.pixels.size
    pixels = aligned(together * size)
    begins = _position_starts(rows, cols, one.row, channels)
    unit = pixel_unit(images)
    entries = empty_entries(together * len(features) + 1)
    line = filled(length)
    sums = Rows(aligned(n_templates * q * line), line)
    source = Rows(pixels, one.row)
    for begin in range(0, n, together):
        end = min(n, begin + together)
        for i in range(begin, end):
            draw(images[i], unit, Canvas(pixels[(i - begin) * size :], one.row, one.inside))
        for t in range(n_templates):
            served = features[starts[t] : starts[t + 1]]
            count = 0
            for i in range(begin, end):
                count = _list(
                    maxima[i],
                    G[i],
                    served,
                    row_masks,
                    col_masks,
                    begins,
                    (i - begin) * size,
                    entries,
                    count,
                )
            add_together(source, entries, count, q, length, sums, t * q * line)
    out[:] = sums.values.reshape((n_templates, q, line))[:, :, :length]


@njit(cache=True, nogil=True)
def _list(
    maxima: np.ndarray,
    G: np.ndarray,
    features: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    begins: np.ndarray,
    at: int,
    entries: Entries,
    n: int,
) -> int:
    """List the patches that features saw of an image whose canvas begins at ``at``."""
    # There are ``n`` entries already; returns how many there are then.
    maxima = borrowed(maxima)
    G = borrowed(G)
    features = borrowed(features)
    starts = borrowed(entries.starts)
    factors = borrowed(entries.factors)
    columns = col_masks.shape[1]
    for r in range(features.shape[0]):
        f = features[r, 0]
        a = features[r, 1]
        b = features[r, 2]
        # Written whatever the maximum is: what is nowhere is written over.
        p = max(maxima[f], 0)
        starts[n] = at + begins[p]
        factors[n] = G[f] * (row_masks[a, p // columns] * col_masks[b, p % columns])
        n += maxima[f] >= 0
    return n


@njit(cache=True, nogil=True)
def mask_gradients(
    values: np.ndarray, maxima: np.ndarray, G: np.ndarray, rows: np.ndarray, cols: np.ndarray
) -> None:
    """Add the gradients in the logarithms of each feature's masks: Σ_i G_if x_if where it is."""
    # A feature is proportional to the mask's value at the row, and at the column, of its maximum.
    # values: (n, n_features), float32
    # maxima: (n, n_features), int32
    # G: (n, n_features), float32
    # rows, cols: (n_features, positions), float32
    positions = np.uint32(cols.shape[1])
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            if maxima[i, f] >= 0:
                change = G[i, f] * values[i, f]
                position = np.uint32(maxima[i, f])
                rows[f, position // positions] += change
                cols[f, position % positions] += change


@njit(cache=True, nogil=True)
def add_templates(
    maxima: np.ndarray,
    G: np.ndarray,
    templates: np.ndarray,
    layout: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the gradients in the pixels."""
    # G_if · mask_f(p_if) · template_f at p_if, over features f.
    # maxima: (n, n_features), int32
    # G: (n, n_features), float32
    # templates: (n_templates, q, q · C), float32
    # layout: (n_features, 3), int64
    # row_masks, col_masks: (n_masks, positions), float32
    # out: (n, H, W · C), float32
    n, height, width = out.shape
    _, q, length = templates.shape
    rows = row_masks.shape[1]
    cols = col_masks.shape[1]
    channels = length // q
    pad_y = margin(height, rows, q)
    pad_x = margin(width // channels, cols, q)
    canvas = canvas_of(height, width // channels, channels, pad_y, pad_x)
    begins = _position_starts(rows, cols, canvas.row, channels)
    for i in range(n):
        canvas.pixels[:] = np.float32(0)
        for f in range(layout.shape[0]):
            p = maxima[i, f]
            if p < 0:
                continue
            t = layout[f, 0]
            a = layout[f, 1]
            b = layout[f, 2]
            factor = G[i, f] * (row_masks[a, p // cols] * col_masks[b, p % cols])
            for y in range(q):
                start = begins[p] + y * canvas.row
                row = canvas.pixels[start : start + length]
                taps = templates[t, y]
                for k in range(length):
                    row[k] += factor * taps[k]
        cut_out(canvas, out[i])
