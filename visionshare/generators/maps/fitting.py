"""Templates for maps: centers of small patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.generators.clustering import cluster_centers
from visionshare.generators.patch_sampling import check_contrast, drawn_patches

__all__ = ["sampled_templates"]


def sampled_templates(
    images: Any, size: int, padding: int, n: int, n_patches: int, random_state: int
) -> np.ndarray:
    """Return templates of unit norm and zero mean: k-means centers of patches with contrast.

    Parameters
    ----------
    images : ndarray of shape (m, H, W, C), uint8 or float32, or ComputedImages
    size : int
        Side of a patch.
    padding : int
        Zero pixels around an image.
    n : int
        Templates.
    n_patches : int
        Patches drawn.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n, size, size, C), float32

    Raises
    ------
    InputError
        If fewer patches than templates have contrast.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((5, 9, 9, 1), np.float32)
    >>> sampled_templates(images, 3, 0, 2, 100, 0).shape
    (2, 3, 3, 1)
    """
    rng = np.random.default_rng(random_state)
    rows, cols = (side + 2 * padding - size + 1 for side in images.shape[1:3])
    which = np.sort(rng.integers(len(images), size=n_patches))
    ys, xs = rng.integers(rows, size=n_patches), rng.integers(cols, size=n_patches)
    patches = drawn_patches(images, which, (ys, xs), size, (padding, padding))
    flat = patches.reshape(n_patches, -1)
    flat -= flat.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(flat, axis=1)
    flat = flat[norms > 0.05 * max(float(norms.max(initial=0.0)), 1e-12)]
    check_contrast(len(flat), "n_maps", n)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    centers = cluster_centers(flat, n, int(rng.integers(2**31)))
    centers -= centers.mean(axis=1, keepdims=True)
    centers /= np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(centers.reshape(n, size, size, -1))
