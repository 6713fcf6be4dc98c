"""Templates from training images: k-means centers of patches with contrast."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.generators.clustering import cluster_centers
from visionshare.generators.patch_sampling import check_contrast, drawn_patches

# Patches with less of the largest contrast say nothing.
_LEAST_CONTRAST = 0.05


def sampled_templates(
    images: Any,
    size: int,
    pads: tuple[int, int],
    n: int,
    n_patches: int,
    contrast: str,
    rng: np.random.Generator,
    seed: int | None = None,
) -> np.ndarray:
    """Return templates (n, size, size, C), float32."""
    rows = images.shape[1] + 2 * pads[0] - size + 1
    columns = images.shape[2] + 2 * pads[1] - size + 1
    # 1) draw patches
    which = np.sort(rng.integers(len(images), size=n_patches))
    ys = rng.integers(rows, size=n_patches)
    xs = rng.integers(columns, size=n_patches)
    patches = drawn_patches(images, which, (ys, xs), size, pads).reshape(n_patches, -1)
    # 2) leave out those without contrast
    spread = patches.std(axis=1)
    largest = max(float(spread.max(initial=0.0)), 1e-12)
    patches = _contrasted(patches[spread > _LEAST_CONTRAST * largest], contrast)
    check_contrast(len(patches), "n_templates", n)
    # 3) cluster the others
    seed = int(rng.integers(2**31)) if seed is None else seed
    centers = cluster_centers(patches, n, seed)
    templates = _contrasted(centers, contrast).reshape(n, size, size, -1)
    return np.ascontiguousarray(templates, np.float32)


def _contrasted(rows: np.ndarray, contrast: str) -> np.ndarray:
    """Return rows brought to zero mean and unit norm, to zero mean, or unchanged."""
    if contrast == "none":
        return rows
    rows = rows - rows.mean(axis=1, keepdims=True)
    if contrast == "mean":
        return rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12))
