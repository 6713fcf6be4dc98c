"""Sizes of numbers: what is too large or too small to compute with is refused."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError

# Of a classifier's weights: scores of features up to 10^7 are then finite in float32.
LARGEST_WEIGHT = 1e30


def peak_of(values: np.ndarray) -> float:
    """Return the largest absolute value, 0 for none."""
    if values.size == 0:
        return 0.0
    return max(float(values.max()), -float(values.min()))


def check_range(argument: str, peak: float, least: float, largest: float, where: str = "") -> None:
    """Check the largest absolute value of some numbers: 0, or from ``least`` to ``largest``."""
    if peak == 0 or least <= peak <= largest:
        return
    given = " ".join(filter(None, [f"values up to {peak:.3g}", where]))
    problem = "too small" if peak < least else "too large"
    accepted = f"largest absolute values from {least:g} to {largest:g}: these are {problem}"
    raise InputError(argument, given, f"{accepted}; multiply them by a constant")
