"""Derivatives of Gabor functions, weighted and summed over the offsets that an image has."""

from __future__ import annotations

import numpy as np


def gabor_slopes(
    parameters: np.ndarray, weights: np.ndarray, reach: np.ndarray, zero_mean: bool
) -> np.ndarray:
    """Return the gradients in θ, f₀, ln σ_z, ln σ_y and φ of Σ weights · values, (n, 5)."""
    # The values are those of :func:`visionshare.generators.gabor.values.gabor_values`; the reach
    # counts as given: that it grows with a width by whole pixels is no slope.
    theta, f0, sigma_z, sigma_y, phase = np.asarray(parameters, np.float64).T[:, :, None, None]
    top, left = (side // 2 for side in weights.shape[1:])
    y = np.arange(-top, top + 1)[:, None]
    z = np.arange(-left, left + 1)[None, :]
    z0 = z * np.cos(theta) + y * np.sin(theta)
    y0 = -z * np.sin(theta) + y * np.cos(theta)
    limit = np.asarray(reach)[:, None, None]
    inside = (np.abs(z) <= limit) & (np.abs(y) <= limit)
    along = (z0 / sigma_z) ** 2
    across = (y0 / sigma_y) ** 2
    envelope = np.where(inside, np.exp(-(along + across) / 2), 0)
    angle = 2 * np.pi * f0 * z0 + phase
    wave = envelope * np.cos(angle)
    slope = -envelope * np.sin(angle)
    # How the Gaussian turns and widens, as factors; how the wave's angle changes.
    turns = z0 * y0 * (1 / sigma_y**2 - 1 / sigma_z**2)
    factors = (turns, 0.0, along, across, 0.0)
    angles = (2 * np.pi * f0 * y0, 2 * np.pi * z0, 0.0, 0.0, 1.0)

    def sums(values: np.ndarray) -> np.ndarray:
        return np.asarray(values.sum(axis=(1, 2)))

    slopes = np.empty((len(weights), 5))
    if zero_mean:
        # The values are w − m·e, with the wave w, the Gaussian e and m = Σw / Σe.
        mean = sums(wave) / sums(envelope)
        on_envelope = sums(weights * envelope)
    for k, (factor, moves) in enumerate(zip(factors, angles, strict=True)):
        of_wave = wave * factor + slope * moves
        slopes[:, k] = sums(weights * of_wave)
        if zero_mean:
            of_mean = (sums(of_wave) - mean * sums(envelope * factor)) / sums(envelope)
            slopes[:, k] -= mean * sums(weights * envelope * factor) + of_mean * on_envelope
    return slopes
