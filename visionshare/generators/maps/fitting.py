"""Templates for maps: centers of small patches."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError

__all__ = ["PATCHES_AT_ONCE", "sampled_templates"]

# Patches whose images are padded together.
PATCHES_AT_ONCE = 8192


def sampled_templates(
    images: np.ndarray, size: int, padding: int, n: int, n_patches: int, random_state: int
) -> np.ndarray:
    """Return templates of unit norm and zero mean: k-means centers of patches with contrast.

    Parameters
    ----------
    images : ndarray of shape (m, H, W, C), uint8 or float32
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
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(random_state)
    rows, cols = (side + 2 * padding - size + 1 for side in images.shape[1:3])
    which = np.sort(rng.integers(len(images), size=n_patches))
    ys, xs = rng.integers(rows, size=n_patches), rng.integers(cols, size=n_patches)
    unit = np.float32(1 / 255) if images.dtype == np.uint8 else np.float32(1)
    dy, dx = np.arange(size)[:, None], np.arange(size)
    flat = np.empty((n_patches, size * size * images.shape[3]), np.float32)
    margins = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    for start in range(0, n_patches, PATCHES_AT_ONCE):
        part = slice(start, start + PATCHES_AT_ONCE)
        drawn, index = np.unique(which[part], return_inverse=True)
        block = np.pad(images[drawn], margins)
        y, x = ys[part][:, None, None] + dy, xs[part][:, None, None] + dx
        flat[part] = (block[index[:, None, None], y, x] * unit).reshape(len(index), -1)
    flat -= flat.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(flat, axis=1)
    flat = flat[norms > 0.05 * max(float(norms.max(initial=0.0)), 1e-12)]
    if len(flat) < n:
        raise InputError("n_maps", n, f"at most {len(flat)}, the patches with contrast")
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    clusters = MiniBatchKMeans(
        n, batch_size=4096, n_init=1, max_iter=20, random_state=int(rng.integers(2**31))
    )
    # One thread: the order of sums, and so the centers, depends on nothing else then.
    with threadpool_limits(limits=1):
        clusters.fit(flat)
    centers = clusters.cluster_centers_.astype(np.float32)
    centers -= centers.mean(axis=1, keepdims=True)
    centers /= np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(centers.reshape(n, size, size, -1))
