"""Kernels that tell how templates have to move: gradients through the maxima of patch features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from visionshare.generators.borrowed import borrowed
from visionshare.generators.cell_kernels import aligned, canvas_of, draw
from visionshare.generators.gradient_kernels import (
    Entries,
    Rows,
    add_entries,
    add_sorted,
    empty_entries,
    filled,
    sort_entries,
)
from visionshare.generators.patches.record_kernels import margin, pixel_unit
from visionshare.generators.patches.tables import Masks

__all__ = ["add_templates", "mask_gradients", "template_gradients"]


class Positions(NamedTuple):
    """Of each position: where its patch begins in a canvas, its row and its column."""

    starts: np.ndarray
    rows: np.ndarray
    cols: np.ndarray


@njit(cache=True, nogil=True)
def _positions(rows: int, cols: int, line: int, channels: int) -> Positions:
    count = rows * cols
    starts, ys = np.empty(count, np.int64), np.empty(count, np.int64)
    xs = np.empty(count, np.int64)
    for y in range(rows):
        for x in range(cols):
            p = y * cols + x
            starts[p], ys[p], xs[p] = y * line + x * channels, y, x
    return Positions(starts, ys, xs)


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
    """Write Σ_i Σ_f G_if · mask_f(p_if) · patch_i(p_if) over the features f of each template.

    The derivative of a maximum is that of the response where it is attained, so that an image costs
    a patch a feature.

    Parameters
    ----------
    images : ndarray of shape (n, H, W · C), uint8 or float32
    maxima : ndarray of shape (n, n_features), int32
        p_if as row · positions + column, −1 where the feature is zero.
    G : ndarray of shape (n, n_features), float32
        Derivatives in the features.
    features : ndarray of shape (n_features, 3), int64
        Features by template, each with its row mask and its column mask.
    starts : ndarray of shape (n_templates + 1,), int64
        Where each template's rows begin in ``features``.
    row_masks, col_masks : ndarray of shape (n_masks, positions), float32
    out : ndarray of shape (n_templates, q, q · C), float32
    """
    (n, height, width), (n_templates, q, length) = images.shape, out.shape
    rows, cols, channels = row_masks.shape[1], col_masks.shape[1], length // q
    pad_y, pad_x = margin(height, rows, q), margin(width // channels, cols, q)
    canvas = canvas_of(height, width // channels, channels, pad_y, pad_x)
    positions, unit = _positions(rows, cols, canvas.row, channels), pixel_unit(images)
    entries, line = empty_entries(len(features) + 1), filled(length)
    sums, source = Rows(aligned(n_templates * q * line), line), Rows(canvas.pixels, canvas.row)
    masks = Masks(row_masks, col_masks)
    for i in range(n):
        draw(images[i], unit, canvas)
        for t in range(n_templates):
            of_template = features[starts[t] : starts[t + 1]]
            count = _list_template(maxima[i], G[i], of_template, masks, positions, entries)
            add_entries(source, entries, 0, count, q, length, sums, t * q * line)
    out[:] = sums.values.reshape((n_templates, q, line))[:, :, :length]


@njit(cache=True, nogil=True)
def _list_template(
    maxima: np.ndarray, G: np.ndarray, features: np.ndarray, masks: Masks, positions: Positions,
    entries: Entries,
) -> int:  # fmt: skip
    """List the patches of an image that a template's features saw; return how many there are."""
    maxima, G, features = borrowed(maxima), borrowed(G), borrowed(features)
    rows, cols, n = borrowed(masks.rows), borrowed(masks.cols), 0
    begins, ys, xs = borrowed(positions.starts), borrowed(positions.rows), borrowed(positions.cols)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    for r in range(features.shape[0]):
        f = features[r, 0]
        # Written whatever the maximum is: what is nowhere is written over.
        p = max(maxima[f], 0)
        starts[n] = begins[p]
        factors[n] = G[f] * rows[features[r, 1], ys[p]] * cols[features[r, 2], xs[p]]
        n += maxima[f] >= 0
    return n


@njit(cache=True, nogil=True)
def mask_gradients(
    values: np.ndarray, maxima: np.ndarray, G: np.ndarray, rows: np.ndarray, cols: np.ndarray
) -> None:
    """Add the gradients in the logarithms of each feature's masks: Σ_i G_if x_if where it is.

    A feature is proportional to the mask's value at the row, and at the column, of its maximum.

    Parameters
    ----------
    values : ndarray of shape (n, n_features), float32
        Features x.
    maxima : ndarray of shape (n, n_features), int32
        Where each maximum is, row · positions + column; −1 where the feature is zero.
    G : ndarray of shape (n, n_features), float32
        Derivatives in the features.
    rows, cols : ndarray of shape (n_features, positions), float32
    """
    positions = np.uint32(cols.shape[1])
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            if maxima[i, f] >= 0:
                change, position = G[i, f] * values[i, f], np.uint32(maxima[i, f])
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
    """Write the gradients in the pixels: G_if · mask_f(p_if) · template_f at p_if, over features f.

    Parameters
    ----------
    maxima : ndarray of shape (n, n_features), int32
        p_if as row · positions + column, −1 where the feature is zero.
    G : ndarray of shape (n, n_features), float32
    templates : ndarray of shape (n_templates, q, q · C), float32
    layout : ndarray of shape (n_features, 3), int64
        Template, row mask and column mask of each feature.
    row_masks, col_masks : ndarray of shape (n_masks, positions), float32
    out : ndarray of shape (n, H, W · C), float32
    """
    (n, height, width), (n_templates, q, length) = out.shape, templates.shape
    rows, cols, channels = row_masks.shape[1], col_masks.shape[1], length // q
    pad_y, pad_x = margin(height, rows, q), margin(width // channels, cols, q)
    canvas = canvas_of(height, width // channels, channels, pad_y, pad_x)
    positions, line = _positions(rows, cols, canvas.row, channels), filled(length)
    taps = aligned(n_templates * q * line)
    taps.reshape((n_templates, q, line))[:, :, :length] = templates
    source, target = Rows(taps, line), Rows(canvas.pixels, canvas.row)
    found, in_order = empty_entries(len(layout) + 1), empty_entries(len(layout) + 1)
    keys, ends = np.empty(len(layout) + 1, np.int64), np.empty(rows * cols, np.int64)
    masks = Masks(row_masks, col_masks)
    for i in range(n):
        count = _list_image(maxima[i], G[i], layout, masks, positions, q * line, found, keys)
        sort_entries(keys, count, found, ends, in_order)
        canvas.pixels[:] = np.float32(0)
        add_sorted(source, in_order, ends, q, length, target, positions.starts)
        for y in range(height):
            begin = canvas.inside + y * canvas.row
            out[i, y] = canvas.pixels[begin : begin + width]


@njit(cache=True, nogil=True)
def _list_image(
    maxima: np.ndarray, G: np.ndarray, layout: np.ndarray, masks: Masks, positions: Positions,
    taps: int, entries: Entries, keys: np.ndarray,
) -> int:  # fmt: skip
    """List the templates of an image's features, and the positions of their maxima as keys."""
    maxima, G, layout, keys = borrowed(maxima), borrowed(G), borrowed(layout), borrowed(keys)
    rows, cols, n = borrowed(masks.rows), borrowed(masks.cols), 0
    ys, xs = borrowed(positions.rows), borrowed(positions.cols)
    starts, factors = borrowed(entries.starts), borrowed(entries.factors)
    for f in range(layout.shape[0]):
        p = max(maxima[f], 0)
        keys[n], starts[n] = p, layout[f, 0] * taps
        factors[n] = G[f] * rows[layout[f, 1], ys[p]] * cols[layout[f, 2], xs[p]]
        n += maxima[f] >= 0
    return n
