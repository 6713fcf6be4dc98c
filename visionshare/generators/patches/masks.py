"""Gaussian masks on a grid of positions, each the product of two one-dimensional ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def axis_masks(positions: int, grid: int, widths: Sequence[float], cut: float) -> np.ndarray:
    """Return one-dimensional Gaussians."""
    # Centered on a grid and zero where they fall below a level.
    centers = (np.arange(grid) + 0.5) * positions / grid - 0.5
    distance = np.abs(np.arange(positions)[None] - centers[:, None])
    masks = []
    for width in widths:
        values = np.exp(-(distance**2) / (2 * width**2))
        reached = (values >= cut) | (distance <= distance.min(axis=1, keepdims=True))
        masks.append(np.where(reached, np.maximum(values, 1e-6), 0.0))
    return np.concatenate(masks).astype(np.float32)


def mask_spans(masks: np.ndarray) -> np.ndarray:
    """Return where each mask is not zero, as (n, 2) start and stop."""
    reached = masks > 0
    first = np.argmax(reached, axis=1)
    stop = masks.shape[1] - np.argmax(reached[:, ::-1], axis=1)
    return np.stack([first, stop], axis=1).astype(np.int64)
