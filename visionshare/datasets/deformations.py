"""Elastic deformations (Simard, Steinkraus, Platt 2003) with small affine maps, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.resources import resolve_jobs

__all__ = ["elastic_deformations"]

# Images that share a stream of random numbers: a generator each would take half of the time.
_BLOCK = 64


def _blur(side: int, sigma: float) -> np.ndarray:
    """Return the matrix of a Gaussian along an axis that is reflected at its ends, float32."""
    import cv2

    taps = cv2.getGaussianKernel(2 * round(4 * sigma) + 1, sigma, cv2.CV_32F)
    one = np.ones(1, np.float32)
    eye = np.eye(side, dtype=np.float32)
    return np.asarray(cv2.sepFilter2D(eye, -1, one, taps, borderType=cv2.BORDER_REFLECT))


def _affine_places(n: int, shape: tuple[int, int], limits: np.ndarray, rng: Any) -> np.ndarray:
    """Return where the pixels of n copies come from, (n, H, W, 2): x, y under small affine maps.

    ``limits``: largest angle in radians, relative change of width and of height, and shear.
    """
    H, W = shape
    angle, sx, sy, tilt = (rng.uniform(-1, 1, (n, 4)) * limits).T
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    zero = np.zeros(n)
    affine = np.einsum("ijn,jkn->nik", turn, np.array([[1 + sx, tilt], [zero, 1 + sy]]))
    y, x = np.indices(shape, np.float32)
    centre = np.array([(W - 1) / 2, (H - 1) / 2], np.float32)
    grid = np.stack([x, y], axis=-1).reshape(-1, 2) - centre
    places = np.matmul(grid, affine.transpose(0, 2, 1).astype(np.float32)) + centre
    return places.reshape(n, H, W, 2)


def _elastic_fields(n: int, blurs: tuple[np.ndarray, np.ndarray], rng: Any) -> np.ndarray:
    """Return smooth random fields (n, H, W, 2), float32, of root mean square 1.

    ``blurs``: the matrices that smooth columns and rows.
    """
    down, across = blurs
    field = rng.random((n, 2, len(down), len(across)), np.float32)
    field *= 2
    field -= 1
    field = np.matmul(np.matmul(down, field), across.T)
    # A smoothed field is weak: what is left of it sets the unit.
    field /= np.maximum(np.sqrt(np.mean(field**2, axis=(1, 2, 3), keepdims=True)), 1e-12)
    return field.transpose(0, 2, 3, 1)


def elastic_deformations(
    images: np.ndarray,
    n_copies: int = 5,
    alpha: float = 1.0,
    sigma: float = 4.0,
    rotation: float = 10.0,
    scale: float = 0.1,
    shear: float = 0.1,
    random_state: int = 0,
    batch: int = 4096,
    first_copy: int = 0,
    n_jobs: int = 1,
) -> Iterator[tuple[int, slice, np.ndarray]]:
    """Yield deformed copies of images, batch by batch.

    Each copy depends on the seed, the image's place and the copy's number alone.

    Parameters
    ----------
    images : ndarray of shape (n, H, W) or (n, H, W, C), uint8 or float32
    n_copies : int, default 5
    alpha : float, default 1.0
        Size of the elastic displacements in pixels: their root mean square.
    sigma : float, default 4.0
        Width in pixels of the Gaussian that smooths them, above 0.
    rotation : float, default 10.0
        Largest angle in degrees.
    scale : float, default 0.1
        Largest relative change of width and of height.
    shear : float, default 0.1
        Largest shear.
    random_state : int, default 0
    batch : int, default 4096
        Images a batch, rounded up to blocks of 64.
    first_copy : int, default 0
        Number of the first copy: more copies than these can be made later.
    n_jobs : int, default 1
        Threads; no copy depends on it.

    Yields
    ------
    copy : int
    places : slice
        Which images.
    deformed : ndarray
        Their copies.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.zeros((3, 8, 8), np.uint8)
    >>> [(c, part.shape) for c, _, part in elastic_deformations(images, 2)]
    [(0, (3, 8, 8)), (1, (3, 8, 8))]
    """
    if images.ndim not in (3, 4):
        raise InputError("images", images.shape, "images of shape (n, H, W) or (n, H, W, C)")
    sizes = {"alpha": alpha, "rotation": rotation, "scale": scale, "shear": shear}
    for name, value in {
        "n_copies": n_copies,
        "first_copy": first_copy,
        "sigma": sigma - 1e-9,
        **sizes,
    }.items():
        if not np.isfinite(value) or value < 0:
            raise InputError(name, value, "a finite number of at least 0 (sigma above 0)")
    limits = np.array([np.deg2rad(rotation), scale, scale, shear])
    blurs = _blur(images.shape[1], sigma), _blur(images.shape[2], sigma)
    # Whole blocks, so that batches of any size yield the same copies.
    step = -(-batch // _BLOCK) * _BLOCK
    threads = resolve_jobs(n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        for copy in range(first_copy, first_copy + n_copies):

            def block(first: int, copy: int = copy) -> np.ndarray:
                rng = np.random.default_rng([random_state, copy, first // _BLOCK])
                return _deformed(images[first : first + _BLOCK], rng, alpha, blurs, limits)

            for start in range(0, len(images), step):
                places = slice(start, min(start + step, len(images)))
                firsts = range(start, places.stop, _BLOCK)
                # One thread: no pool is waited for between pieces of a tenth of a millisecond.
                parts = pool.map(block, firsts) if threads > 1 else map(block, firsts)
                yield copy, places, np.concatenate(list(parts))


def _deformed(
    images: np.ndarray,
    rng: np.random.Generator,
    alpha: float,
    blurs: tuple[np.ndarray, np.ndarray],
    limits: np.ndarray,
) -> np.ndarray:
    """Return a copy of each image of a block; a block draws the same however few it holds."""
    import cv2

    shape = images.shape[1:3]
    places = _affine_places(_BLOCK, shape, limits, rng)
    if alpha > 0:
        places += np.float32(alpha) * _elastic_fields(_BLOCK, blurs, rng)
    out = np.empty_like(images)
    for image, where, copy in zip(images, places, out, strict=False):
        copy[...] = cv2.remap(
            image, where, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        ).reshape(copy.shape)
    return out
