"""The scaling of columns: from their weighted moments to an offset and a scale each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from visionshare.errors import InputError
from visionshare.errors.ranges import check_range

SCALINGS = ("none", "unit_variance", "unit_norm", "max_abs")
# What kernels make of float16's infinity; its values that are no numbers lie above.
_HALF_INFINITY = 65536.0
# Variances of float64 columns that are rounding alone, as fractions of the mean square.
_FAR_NOISE = 1e-22
# Largest absolute values of a column between which it can be scaled: its scale and its products
# with a residual of about 1 are then finite in the precision that it is kept in.
_LIMITS = {"float16": (0.0, _HALF_INFINITY), "float32": (1e-30, 1e34), "float64": (1e-290, 1e300)}
# Between these the squares of float64 are as exact as others.
_PLAIN_SQUARES = (1e-140, 1e140)
# Largest absolute values of columns that are not to be scaled.
_UNSCALED_LIMITS = (1e-15, 1e30)


def example_weights(kind: str, omega: np.ndarray | None, m: int) -> tuple[np.ndarray, float]:
    """Return the weights (m,) of examples, scaled to sum 1, and their sum before."""
    if kind not in SCALINGS:
        raise InputError("scaling", kind, " or ".join(map(repr, SCALINGS)))
    weights = np.ones(m) if omega is None else np.asarray(omega, np.float64)
    total = float(np.sum(weights))
    if omega is not None:
        valid = weights.shape == (m,) and (weights >= 0).all() and 0 < total < np.inf
        if not valid:
            given = f"{weights.shape} of sum {total}"
            raise InputError("omega", given, f"{m} finite weights of at least 0, one above 0")
    return weights / total, total


def flat_noise(dtype: str) -> float:
    """Return the variance that is rounding alone, as a fraction of the mean square."""
    return float(64 * np.finfo(np.float32).eps ** 2) if dtype != "float64" else 1e-14


class Moments(NamedTuple):
    """What a scaling is chosen from."""

    mean: np.ndarray
    square: np.ndarray
    peak: np.ndarray
    variance: np.ndarray
    flat: np.ndarray
    unit: np.ndarray


def column_moments(
    sums: np.ndarray,
    dtype: str,
    omega: np.ndarray,
    column: Callable[[int], np.ndarray] | None = None,
) -> Moments:
    """Return the moments of unscaled columns."""
    # Those of extreme columns are written over.
    mean, square, peak = sums.T.copy()
    if dtype == "float16" and (peak >= _HALF_INFINITY).any():
        first = int(np.argmax(peak >= _HALF_INFINITY))
        given = f"float16, but column {first} has a value beyond 65504, or one that is no number"
        raise InputError("dtype", given, "'float32', or columns of smaller values")
    exact = dtype != "float64" or column is not None
    _check_peaks(peak, *(_LIMITS[dtype] if exact else _PLAIN_SQUARES))
    # 1) extreme columns of float64: divide them by a power of two
    unit = np.ones(len(peak))
    least, largest = _PLAIN_SQUARES
    for j in np.flatnonzero((peak > 0) & ((peak < least) | (peak > largest))):
        assert column is not None
        unit[j] = np.ldexp(1.0, int(np.frexp(peak[j])[1]))
        x = column(int(j)) / unit[j]
        mean[j] = omega @ x
        square[j] = omega @ x**2
        peak[j] = peak[j] / unit[j]
    # 2) which columns vary? Those that hold NaN count as constant
    with np.errstate(over="ignore", invalid="ignore"):
        variance = square - mean**2
    flat = (variance <= flat_noise(dtype) * square) | ~np.isfinite(square)
    moments = Moments(mean, square, peak, variance, flat, unit)
    # 3) columns that are far from zero
    if dtype == "float64" and column is not None:
        _resolve_far_from_zero(column, omega, moments)
    return moments


def _check_peaks(peak: np.ndarray, least: float, largest: float) -> None:
    """Raise an InputError if a column's values are too large or too small to be scaled."""
    outside = (peak > 0) & ((peak < least) | (peak > largest))
    if outside.any():
        first = int(np.argmax(outside))
        check_range("X", float(peak[first]), least, largest, f"in column {first}")


def _resolve_far_from_zero(
    column: Callable[[int], np.ndarray], omega: np.ndarray, moments: Moments
) -> None:
    """Write the moments of columns over that are so far from zero that Σ ω x² − mean² is noise."""
    mean, square, _, variance, flat, unit = moments
    for j in np.flatnonzero(flat & np.isfinite(square) & (square > 0)):
        x = column(int(j)) / unit[j]
        center = x[0] + float(omega @ (x - x[0]))
        around = float(omega @ (x - center) ** 2)
        flat[j] = around <= _FAR_NOISE * square[j]
        mean[j] = center
        variance[j] = around


def chosen_scaling(
    kind: str, moments: Moments, total: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return offset, scale and variance (d,) of each column, scaled."""
    mean, square, peak, variance, flat, unit = moments
    offset = np.zeros(len(mean))
    if kind == "unit_variance":
        offset = mean * unit
        scale = np.where(flat, 0.0, 1 / np.sqrt(np.where(flat, 1.0, variance)))
    elif kind == "max_abs":
        scale = np.where(flat, 0.0, 1 / np.where(peak > 0, peak, 1.0))
    elif kind == "unit_norm":
        norm = np.sqrt(total) * np.sqrt(np.where(flat, 1.0, square))
        scale = np.where(flat, 0.0, 1 / norm)
    else:
        # No column too large to remain unscaled, and not all of them too small.
        least, largest = _UNSCALED_LIMITS
        _check_peaks(peak * unit, 0.0, largest)
        check_range("X", float((peak * unit).max(initial=0.0)), least, largest)
        scale = np.where(flat, 0.0, unit)
    return offset, scale / unit, np.where(flat, 0.0, np.where(flat, 0.0, variance) * scale**2)
