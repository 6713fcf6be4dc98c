"""Kernels that tell how templates have to move: gradients through the maxima of patch features."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from visionshare.generators.patches.record_kernels import margin, pixel_unit

__all__ = ["add_templates", "mask_gradients", "template_gradients"]


@njit(cache=True, nogil=True)
def _add_patch(image: np.ndarray, y: int, x: int, factor: np.float32, out: np.ndarray) -> None:
    """Add factor × the patch at row y and value x of a row, zeros outside, to ``out``."""
    height, width = image.shape
    left = max(0, -x)
    length = min(out.shape[1], width - x) - left
    for dy in range(max(0, -y), min(out.shape[0], height - y)):
        pixels, taps = image[y + dy, x + left :], out[dy, left:]
        for i in range(length):
            taps[i] += factor * np.float32(pixels[i])


@njit(cache=True, nogil=True, parallel=True)
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
    a patch a feature. A template is one thread's, its images in order: the bits do not depend on
    the number of threads.

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
    n, height, width = images.shape
    q, positions = out.shape[1], col_masks.shape[1]
    channels, unit = out.shape[2] // q, pixel_unit(images)
    pad_y = margin(height, row_masks.shape[1], q)
    pad_x = margin(width // channels, positions, q)
    for t in prange(out.shape[0]):
        out[t] = np.float32(0)
        for r in range(starts[t], starts[t + 1]):
            f, rows, cols = features[r, 0], row_masks[features[r, 1]], col_masks[features[r, 2]]
            for i in range(n):
                if maxima[i, f] >= 0 and G[i, f] != 0:
                    y, x = maxima[i, f] // positions, maxima[i, f] % positions
                    factor = G[i, f] * rows[y] * cols[x] * unit
                    _add_patch(images[i], y - pad_y, (x - pad_x) * channels, factor, out[t])


@njit(cache=True, nogil=True, parallel=True)
def mask_gradients(
    values: np.ndarray, maxima: np.ndarray, G: np.ndarray, rows: np.ndarray, cols: np.ndarray
) -> None:
    """Write the gradients in the logarithms of each feature's masks: Σ_i G_if x_if where it is.

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
    positions = cols.shape[1]
    for f in prange(rows.shape[0]):
        rows[f] = np.float32(0)
        cols[f] = np.float32(0)
        for i in range(values.shape[0]):
            if maxima[i, f] >= 0:
                change = G[i, f] * values[i, f]
                rows[f, maxima[i, f] // positions] += change
                cols[f, maxima[i, f] % positions] += change


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
    """Add the gradients in the pixels: G_if · mask_f(p_if) · template_f at p_if, over features f.

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
    n, height, row = out.shape
    q, positions = templates.shape[1], col_masks.shape[1]
    channels = templates.shape[2] // q
    width = row // channels
    pad_y, pad_x = margin(height, row_masks.shape[1], q), margin(width, positions, q)
    for i in range(n):
        for f in range(layout.shape[0]):
            if maxima[i, f] >= 0 and G[i, f] != 0:
                y, x = maxima[i, f] // positions, maxima[i, f] % positions
                factor = G[i, f] * row_masks[layout[f, 1], y] * col_masks[layout[f, 2], x]
                top, left = y - pad_y, (x - pad_x) * channels
                first, last = max(0, -left), min(q * channels, row - left)
                for ty in range(max(0, -top), min(q, height - top)):
                    for t in range(first, last):
                        out[i, top + ty, left + t] += factor * templates[layout[f, 0], ty, t]
