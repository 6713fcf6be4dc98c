"""The values of Gabor functions at the offsets that an image has, and of the image itself."""

from __future__ import annotations

import numpy as np

# Filters reach so many times their larger σ.
_CUT = 3.0
#: Pixels of an image at most: no filter reaches further.
FURTHEST = 2**16


def gabor_values(
    parameters: np.ndarray,
    height: int,
    width: int,
    reach: np.ndarray | None = None,
    zero_mean: bool = False,
) -> np.ndarray:
    """Return Gabor functions at all offsets that an image has, center in the middle."""
    # exp(−z₀²/2σ_z² − y₀²/2σ_y²) cos(2πf₀z₀ + φ) with z₀ = z cos θ + y sin θ and y₀ = −z sin θ +
    # y cos θ, z to the right and y down; zero beyond its reach on either axis.
    theta, f0, sigma_z, sigma_y, phase = np.asarray(parameters, np.float64).T[:, :, None, None]
    y = np.arange(1 - height, height)[:, None]
    z = np.arange(1 - width, width)[None, :]
    z0 = z * np.cos(theta) + y * np.sin(theta)
    y0 = -z * np.sin(theta) + y * np.cos(theta)
    envelope = np.exp(-(z0**2) / (2 * sigma_z**2) - y0**2 / (2 * sigma_y**2))
    limit = (reach_of(parameters) if reach is None else np.asarray(reach))[:, None, None]
    inside = (np.abs(z) <= limit) & (np.abs(y) <= limit)
    values = np.where(inside, envelope * np.cos(2 * np.pi * f0 * z0 + phase), 0)
    if zero_mean:
        envelope = np.where(inside, envelope, 0)
        values -= envelope * (values.sum(axis=(1, 2)) / envelope.sum(axis=(1, 2)))[:, None, None]
    return values.astype(np.float32)


def reach_of(parameters: np.ndarray) -> np.ndarray:
    """Return how many pixels a filter's support reaches from its center."""
    reach = np.ceil(_CUT * np.asarray(parameters, np.float64)[:, 2:4].max(axis=1))
    # No image is larger, and no integer holds what the widths of an untrusted file may be.
    return np.minimum(reach, FURTHEST).astype(np.int64)


def gray_of(images: np.ndarray) -> np.ndarray:
    """Return the channels' mean (n, H, W), float32, of images (n, H, W, C); bytes as 0 to 1."""
    gray: np.ndarray = images.astype(np.float32).mean(axis=3, dtype=np.float32)
    if images.dtype == np.uint8:
        gray *= np.float32(1 / 255)
    return gray
