"""Elastic deformations (Simard, Steinkraus, Platt 2003) with small affine maps, streamed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from visionshare.errors import InputError

__all__ = ["deform", "elastic_deformations"]


def deform(
    image: np.ndarray,
    rng: np.random.Generator,
    alpha: float,
    sigma: float,
    rotation: float,
    scale: float,
    shear: float,
) -> np.ndarray:
    """Return one deformed copy of an image (H, W) or (H, W, C).

    Parameters
    ----------
    image : ndarray, uint8 or float32
    rng : numpy.random.Generator
    alpha : float
        Size of the displacements in pixels.
    sigma : float
        Width in pixels of the Gaussian that smooths them.
    rotation : float
        Largest angle in degrees.
    scale : float
        Largest relative change of size.
    shear : float
        Largest shear.
    """
    import cv2

    H, W = image.shape[:2]
    field = rng.uniform(-1, 1, (H, W, 2)).astype(np.float32)
    angle, sx, sy, tilt = rng.uniform(-1, 1, 4) * [np.deg2rad(rotation), scale, scale, shear]
    grid = np.stack(np.meshgrid(np.arange(W), np.arange(H)), axis=-1).astype(np.float32)
    centre = np.array([(W - 1) / 2, (H - 1) / 2], np.float32)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    affine = turn @ np.array([[1 + sx, tilt], [0.0, 1 + sy]])
    places = (grid - centre) @ affine.T.astype(np.float32) + centre
    if alpha > 0:
        field = cv2.GaussianBlur(field, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
        # A smoothed field is weak: alpha is the size of what is left of it.
        field /= max(float(np.sqrt(np.mean(field**2))), 1e-12)
        places = places + np.float32(alpha) * field
    maps = places.astype(np.float32)
    return cv2.remap(image, maps, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)


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
) -> Iterator[tuple[int, slice, np.ndarray]]:
    """Yield deformed copies of images, batch by batch.

    Each copy depends on the seed, the image's number and the copy's number alone.

    Parameters
    ----------
    images : ndarray of shape (n, H, W) or (n, H, W, C), uint8 or float32
    n_copies : int, default 5
    alpha, sigma, rotation, scale, shear : float
        As in :func:`deform`; all at least 0, sigma above 0.
    random_state : int, default 0
    batch : int, default 4096
        Images a batch.

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
    for name, value in {"n_copies": n_copies, "sigma": sigma - 1e-9, **sizes}.items():
        if not np.isfinite(value) or value < 0:
            raise InputError(name, value, "a finite number of at least 0 (sigma above 0)")
    for copy in range(n_copies):
        for start in range(0, len(images), batch):
            places = slice(start, min(start + batch, len(images)))
            yield copy, places, np.stack([
                deform(
                    images[i], np.random.default_rng([random_state, copy, i]),
                    alpha, sigma, rotation, scale, shear,
                )
                for i in range(places.start, places.stop)
            ])  # fmt: skip
