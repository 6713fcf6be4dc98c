"""Elastic deformations (Simard, Steinkraus, Platt 2003) with small affine maps, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from visionshare.errors import InputError
from visionshare.resources import resolve_jobs, thread_limit

__all__ = ["elastic_deformations"]

# Images that share a stream of random numbers: a generator each would take half of the time.
_BLOCK = 64
# Rows of a picture that OpenCV's remap accepts.
_MAX_ROWS = 32_000
# Pixels or degrees of a deformation: more leaves nothing of an image.
_LARGEST = 1e4
# Fraction of a blurred field's variance that is kept.
_ENERGY = 0.9999


def _blur(side: int, sigma: float) -> np.ndarray:
    """Return the matrix of a Gaussian along an axis that is reflected at its ends, float32."""
    import cv2

    taps = cv2.getGaussianKernel(2 * round(4 * sigma) + 1, sigma, cv2.CV_32F)
    one = np.ones(1, np.float32)
    eye = np.eye(side, dtype=np.float32)
    return np.asarray(cv2.sepFilter2D(eye, -1, one, taps, borderType=cv2.BORDER_REFLECT))


@dataclass(frozen=True)
class _Deformation:
    """What pixels' coordinates are sums of: smooth fields of random size, and affine maps.

    Attributes
    ----------
    deviations : ndarray of shape (n_modes,), float32
        Standard deviations of the smooth fields' factors.
    basis : ndarray of shape (n_modes + 3, H · W), float32
        The smooth fields, each of unit length, then x and y from the image's middle, then ones.
    shape : tuple of int
        H, W.
    alpha : float
        Root mean square displacement, in pixels.
    limits : ndarray of shape (4,)
        Largest angle in radians, relative change of width and of height, and shear.
    """

    deviations: np.ndarray
    basis: np.ndarray
    shape: tuple[int, int]
    alpha: float
    limits: np.ndarray


def _deformation(
    shape: tuple[int, int], sigma: float, alpha: float, limits: np.ndarray
) -> _Deformation:
    """Return the deformation of images of a shape.

    White noise blurred along both axes, B N Aᵀ, is a sum of the products of left singular vectors
    of B and A with independent normal factors, as large as the products of their singular values.
    Few of those are not nearly 0: a fifth of the random numbers, and no blurring.
    """
    (U, s, _), (V, t, _) = (np.linalg.svd(_blur(side, sigma).astype(np.float64)) for side in shape)
    deviations = np.outer(s, t).ravel()
    order = np.argsort(-deviations, kind="stable")
    energy = np.cumsum(np.square(deviations[order]))
    kept = order[: 1 + int(np.searchsorted(energy, _ENERGY * energy[-1]))]
    i, j = np.unravel_index(kept, (len(s), len(t)))
    fields = U.T[i][:, :, None] * V.T[j][:, None, :]
    y, x = np.indices(shape) - (np.array(shape)[:, None, None] - 1) / 2
    planes = [x.ravel(), y.ravel(), np.ones(x.size)]
    basis = np.concatenate([fields.reshape(len(kept), -1), planes])
    kept_deviations = deviations[kept].astype(np.float32)
    return _Deformation(kept_deviations, basis.astype(np.float32), shape, alpha, limits)


def _affine(n: int, limits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return n small linear maps, (n, 2, 2), float32; see :class:`_Deformation`."""
    angle, sx, sy, tilt = (rng.uniform(-1, 1, (n, 4)) * limits).T
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    zero = np.zeros(n)
    stretch = np.array([[1 + sx, tilt], [zero, 1 + sy]])
    return np.einsum("ijn,jkn->nik", turn, stretch).astype(np.float32)


def _coordinates(
    n: int, deformation: _Deformation, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the pixels of n copies come from: x and y, each (n, H · W), float32."""
    (H, W), basis, deviations = deformation.shape, deformation.basis, deformation.deviations
    factors = np.empty((2, n, len(basis)), np.float32)
    factors[..., -3:-1] = _affine(n, deformation.limits, rng).transpose(1, 0, 2)
    factors[..., -1] = np.array([[(W - 1) / 2], [(H - 1) / 2]])
    smooth = rng.standard_normal((2, n, len(deviations)), np.float32) * deviations
    # The fields are orthonormal, so that the factors tell the root mean square displacement.
    size = np.sqrt(np.mean(np.square(smooth).sum(axis=2), axis=0) / (H * W))
    factors[..., :-3] = smooth * (np.float32(deformation.alpha) / np.maximum(size, 1e-12))[:, None]
    return factors[0] @ basis, factors[1] @ basis


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

    Each copy depends on the seed, the image's index and the copy's number alone.

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
        Images per batch, at least 1; rounded up to blocks of 64.
    first_copy : int, default 0
        Number of the first copy: more copies than these can be made later.
    n_jobs : int, default 1
        Threads; no copy depends on it.

    Yields
    ------
    copy : int
    indices : slice
        Of the images.
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
    for name, value in (("n_copies", n_copies), ("first_copy", first_copy), ("batch", batch)):
        if not hasattr(value, "__index__") or value < (name == "batch"):
            raise InputError(name, value, "an integer of at least 0 (batch of at least 1)")
    sizes = {"alpha": alpha, "rotation": rotation, "scale": scale, "shear": shear}
    for name, size in {"sigma": sigma, **sizes}.items():
        if not 0 <= size <= _LARGEST or (name == "sigma" and size == 0):
            accepted = f"a number from 0 to {_LARGEST:g} (sigma above 0)"
            raise InputError(name, size, accepted)
    limits = np.array([np.deg2rad(rotation), scale, scale, shear])
    deformation = _deformation(images.shape[1:3], sigma, alpha, limits)
    # Whole blocks, so that batches of any size yield the same copies.
    step = -(-batch // _BLOCK) * _BLOCK
    threads = resolve_jobs(n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        for copy in range(first_copy, first_copy + n_copies):

            def block(first: int, copy: int = copy) -> np.ndarray:
                rng = np.random.default_rng([random_state, copy, first // _BLOCK])
                return _deformed(images[first : first + _BLOCK], rng, deformation)

            for start in range(0, len(images), step):
                indices = slice(start, min(start + step, len(images)))
                firsts = range(start, indices.stop, _BLOCK)
                with thread_limit(threads):
                    # One thread: no pool is waited for between pieces of a millisecond.
                    parts = list(pool.map(block, firsts) if threads > 1 else map(block, firsts))
                yield copy, indices, np.concatenate(parts)


def _deformed(
    images: np.ndarray, rng: np.random.Generator, deformation: _Deformation
) -> np.ndarray:
    """Return a copy of each image of a block; a block draws the same however few it holds."""
    import cv2

    n, (H, W) = len(images), deformation.shape
    x, y = _coordinates(_BLOCK, deformation, rng)
    np.clip(y, -1, H, out=y)
    # One call for a stack of images with rows of zeros between them: calls of a few microseconds
    # would keep other threads waiting for the interpreter.
    stack = np.zeros((n, H + 2, *images.shape[2:]), images.dtype)
    stack[:, 1:-1] = images
    out = np.empty_like(images)
    per_call = max(1, _MAX_ROWS // (H + 2))
    y += ((np.arange(_BLOCK) % per_call) * (H + 2) + 1).astype(np.float32)[:, None]
    for first in range(0, n, per_call):
        part = slice(first, min(first + per_call, n))
        source, maps = stack[part], (x[part].reshape(-1, W), y[part].reshape(-1, W))
        moved = cv2.remap(
            source.reshape(-1, *source.shape[2:]), *maps, cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_CONSTANT,
        )  # fmt: skip
        out[part] = moved.reshape(out[part].shape)
    return out
