"""Gradients through the maps of a chain: where each maximum is, a patch of what lies below."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.generators.patches.record_kernels import pixel_unit

__all__ = ["image_gradients", "template_gradients"]


@njit(cache=True, nogil=True)
def template_gradients(
    images: np.ndarray,
    seen: np.ndarray,
    G: np.ndarray,
    pad: int,
    pool: int,
    out: np.ndarray,
    biases: np.ndarray,
) -> None:
    """Add the gradients in templates and biases of Σ G · maps, where each maximum is.

    Parameters
    ----------
    images : ndarray of shape (n, H, W, C), uint8 or float32
    seen : ndarray of shape (n, h, w, n_maps), int8
        As :func:`visionshare.generators.maps.kernels.maps_of_block` writes it.
    G : ndarray of shape (n, h, w, n_maps), float32
        Derivatives in the maps.
    pad, pool : int
    out : ndarray of shape (n_maps, q, q, C), float32
    biases : ndarray of shape (n_maps,), float32
    """
    n, rows, cols, channels = images.shape
    n_maps, q = out.shape[0], out.shape[1]
    padded = np.zeros((rows + 2 * pad, (cols + 2 * pad) * channels), np.float32)
    unit, length = pixel_unit(images), q * channels
    taps = out.reshape(n_maps, q, length)
    for i in range(n):
        for y in range(rows):
            for x in range(cols):
                for c in range(channels):
                    value = np.float32(images[i, y, x, c]) * unit
                    padded[y + pad, (x + pad) * channels + c] = value
        for y in range(seen.shape[1]):
            for x in range(seen.shape[2]):
                for m in range(n_maps):
                    g, place = G[i, y, x, m], seen[i, y, x, m]
                    if place >= 0 and g != 0:
                        top, left = y * pool + place // pool, (x * pool + place % pool) * channels
                        biases[m] += g
                        for ty in range(q):
                            for t in range(length):
                                taps[m, ty, t] += g * padded[top + ty, left + t]


@njit(cache=True, nogil=True)
def image_gradients(
    seen: np.ndarray, G: np.ndarray, templates: np.ndarray, pad: int, pool: int, out: np.ndarray
) -> None:
    """Add the gradients in the pixels of Σ G · maps to ``out`` (n, H, W, C), float32.

    ``templates`` is (n_maps, q, q, C), and pixels are read as they are.
    """
    rows, cols, channels = out.shape[1:]
    n_maps, q = templates.shape[0], templates.shape[1]
    for i in range(out.shape[0]):
        for y in range(seen.shape[1]):
            for x in range(seen.shape[2]):
                for m in range(n_maps):
                    g, place = G[i, y, x, m], seen[i, y, x, m]
                    if place >= 0 and g != 0:
                        top, left = y * pool + place // pool - pad, x * pool + place % pool - pad
                        for ty in range(max(0, -top), min(q, rows - top)):
                            for tx in range(max(0, -left), min(q, cols - left)):
                                for c in range(channels):
                                    out[i, top + ty, left + tx, c] += g * templates[m, ty, tx, c]
