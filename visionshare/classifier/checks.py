"""Checks of the numbers of a compact classifier: finite, and not too large for sums."""

from __future__ import annotations

import numpy as np

from visionshare.errors import InputError
from visionshare.errors.ranges import LARGEST_WEIGHT, check_range, peak_of
from visionshare.generators.base import FeatureFamily

# Arrays of families that values are compared with, which may be as large as there are numbers.
_COMPARED = frozenset({"radii", "thresholds"})


def check_weights(name: str, weights: np.ndarray, intercept: np.ndarray) -> None:
    """Raise an InputError if a weight or an intercept is not finite, or too large for sums."""
    for array in (weights, intercept):
        if not np.isfinite(array).all():
            raise InputError(name, "NaN or infinity", "finite numbers")
        check_range(name, peak_of(array), 0.0, LARGEST_WEIGHT)


def check_family(family: FeatureFamily) -> None:
    """Raise an InputError if a family's numbers are too large to be multiplied, here or in C."""
    try:
        _, arrays = family.to_state()
    except InputError:
        # A family of functions has no numbers.
        return
    for name, array in arrays.items():
        # Of a part of a family the name follows its number: "0.radii".
        is_multiplied = name.rpartition(".")[2] not in _COMPARED
        if array.dtype.kind == "f" and is_multiplied:
            peak = peak_of(array[np.isfinite(array)])
            check_range(f"family, {name}", peak, 0.0, LARGEST_WEIGHT)
