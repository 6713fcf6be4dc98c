"""Kernels that tell how templates have to move: gradients through the maxima of patch features."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.layers.templates.responses import (
    canvas_of,
    cut_out,
)
from visionshare.generators.patches.record_kernels import margin


@njit(cache=True, nogil=True)
def _position_starts(rows: int, columns: int, line: int, channels: int) -> np.ndarray:
    """Return where the patch of each position begins in a canvas."""
    starts = np.empty(rows * columns, np.int64)
    for y in range(rows):
        for x in range(columns):
            starts[y * columns + x] = y * line + x * channels
    return starts


@njit(cache=True, nogil=True)
def places_and_slopes(
    maxima: np.ndarray,
    G: np.ndarray,
    row_masks: np.ndarray,
    col_masks: np.ndarray,
    q: int,
    channels: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where patches with maxima begin in a padded image, and the slopes of responses."""
    # The derivative of a maximum is that of the response where it is, times its mask.
    # maxima: (n, n_features), int32; −1 where there is none
    # G: (n, n_features), float32
    # row_masks, col_masks: (n_features, positions), float32
    columns = col_masks.shape[1]
    line = (columns + q - 1) * channels
    places = np.full(maxima.shape, -1, np.int32)
    slopes = np.zeros(maxima.shape, np.float32)
    for i in range(maxima.shape[0]):
        for f in range(maxima.shape[1]):
            p = maxima[i, f]
            if p >= 0:
                y = p // columns
                x = p % columns
                places[i, f] = y * line + x * channels
                slopes[i, f] = G[i, f] * (row_masks[f, y] * col_masks[f, x])
    return places, slopes


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
