"""Where pixels of deformed copies come from: elastic fields, affine maps, shifts and mirrors.

The elastic fields follow Simard, Steinkraus and Platt (2003). All maps are one map, so that
each pixel is interpolated once at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from visionshare.datasets.augmentation.copies import Augmentation

# Rows of a picture that OpenCV's remap accepts.
_MAX_ROWS = 32_000
# Fraction of a blurred field's variance that is kept.
_ENERGY = 0.9999


def _blur(side: int, sigma: float) -> np.ndarray:
    """Return the matrix of a Gaussian along an axis that is reflected at its ends, float32."""
    import cv2

    taps = cv2.getGaussianKernel(2 * round(4 * sigma) + 1, sigma, cv2.CV_32F)
    one = np.ones(1, np.float32)
    eye = np.eye(side, dtype=np.float32)
    return cv2.sepFilter2D(eye, -1, one, taps, borderType=cv2.BORDER_REFLECT)


class Moves(NamedTuple):
    """Mirrors and shifts of a block of images, which need no interpolation."""

    mirrored: np.ndarray
    down: np.ndarray
    right: np.ndarray
    reflect: bool


def moved(images: np.ndarray, moves: Moves) -> np.ndarray:
    """Return images (n, H, W) or (n, H, W, C) mirrored and shifted; nothing is interpolated."""
    from visionshare.datasets.augmentation.kernels import move

    n, H, W = images.shape[:3]
    out = np.empty(images.shape, images.dtype)
    pixels = np.ascontiguousarray(images).reshape(n, H, W, -1)
    move(pixels, *moves, out.reshape(pixels.shape))
    return out


class Deformation:
    """What pixels' coordinates are sums of: smooth fields of random size, and affine maps."""

    def __init__(self, shape: tuple[int, int], augmentation: Augmentation) -> None:
        self._shape = shape
        self._alpha = augmentation.alpha
        angle = np.deg2rad(augmentation.rotation)
        # Of the angle, of both scales and of the shear.
        scale = augmentation.scale
        self._limits = np.array([angle, scale, scale, augmentation.shear])
        self._deviations, self._basis = _fields(shape, augmentation.sigma)

    def deformed(
        self, images: np.ndarray, n: int, rng: np.random.Generator, moves: Moves | None
    ) -> np.ndarray:
        """Return a copy of each image of a block of ``n``, drawn as for a whole block."""
        H, W = self._shape
        x, y = self._coordinates(n, rng, moves)
        if moves is not None and moves.reflect:
            from visionshare.datasets.augmentation.kernels import reflect

            reflect(x, np.float32(W - 1))
            reflect(y, np.float32(H - 1))
        np.clip(y, -1, H, out=y)
        return _resampled(images, x, y)

    def _coordinates(
        self, n: int, rng: np.random.Generator, moves: Moves | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where the pixels of n copies come from: x and y, each (n, H · W), float32."""
        H, W = self._shape
        factors = np.empty((2, n, len(self._basis)), np.float32)
        factors[..., -3:-1] = _linear_maps(n, self._limits, rng).transpose(1, 0, 2)
        factors[..., -1] = np.array([[(W - 1) / 2], [(H - 1) / 2]])
        smooth = rng.standard_normal((2, n, len(self._deviations)), np.float32) * self._deviations
        # The fields are orthonormal, so that the factors tell the root mean square displacement.
        size = np.sqrt(np.mean(np.square(smooth).sum(axis=2), axis=0) / (H * W))
        scale = np.float32(self._alpha) / np.maximum(size, 1e-12)
        factors[..., :-3] = smooth * scale[:, None]
        if moves is not None:
            factors[..., -1] -= np.array([moves.right, moves.down])
            # x becomes W − 1 − x.
            factors[0, moves.mirrored] *= -1
            factors[0, moves.mirrored, -1] += W - 1
        return factors[0] @ self._basis, factors[1] @ self._basis


def _fields(shape: tuple[int, int], sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the deviations and the basis of a :class:`Deformation`."""
    # White noise blurred along both axes, B N Aᵀ, is a sum of the products of left singular
    # vectors of B and A with independent normal factors, as large as the products of their
    # singular values. Few of those are not nearly 0: a fifth of the random numbers, and no
    # blurring.
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
    return deviations[kept].astype(np.float32), basis.astype(np.float32)


def _linear_maps(n: int, limits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return n small linear maps, (n, 2, 2), float32."""
    angle, sx, sy, tilt = (rng.uniform(-1, 1, (n, 4)) * limits).T
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    stretch = np.array([[1 + sx, tilt], [np.zeros(n), 1 + sy]])
    return np.einsum("ijn,jkn->nik", turn, stretch).astype(np.float32)


def _resampled(images: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return images at coordinates of a block, each (≥ n, H · W); y from −1 to H."""
    import cv2

    n, H, W = images.shape[:3]
    # One call for a stack of images with rows of zeros between them: calls of a few microseconds
    # would keep other threads waiting for the interpreter.
    stack = np.zeros((n, H + 2, *images.shape[2:]), images.dtype)
    stack[:, 1:-1] = images
    out = np.empty(images.shape, images.dtype)
    per_call = max(1, _MAX_ROWS // (H + 2))
    y += ((np.arange(len(y)) % per_call) * (H + 2) + 1).astype(np.float32)[:, None]
    for first in range(0, n, per_call):
        part = slice(first, min(first + per_call, n))
        source = stack[part].reshape(-1, *stack.shape[2:])
        maps = x[part].reshape(-1, W), y[part].reshape(-1, W)
        found = cv2.remap(source, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
        out[part] = found.reshape(out[part].shape)
    return out
