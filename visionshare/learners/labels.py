"""Several labels an example: a matrix of 0 and 1, with NaN where a label is not known."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.errors.ranges import check_range, peak_of

# Largest absolute values of the targets of a regression: penalties and tolerances, which do not
# grow with them, still matter.
_LEAST_TARGET = 1e-12
_LARGEST_TARGET = 1e12


def has_columns(y: Any) -> bool:
    """Return whether targets are a matrix of several columns."""
    shape = np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def known_entries(Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of targets with 0 for missing entries, and which are known."""
    try:
        Y = np.asarray(Y, np.float64)
    except (TypeError, ValueError):
        raise InputError("y", "a matrix of other values", "numbers, NaN where missing") from None
    known = ~np.isnan(Y)
    if not known.any(axis=0).all():
        column = int(np.argmin(known.any(axis=0)))
        raise InputError("y", f"column {column} without entries", "a known entry in each column")
    return np.where(known, Y, 0.0), known


def finite_numbers(y: Any) -> np.ndarray:
    """Return targets of a regression as float64."""
    try:
        numbers = np.asarray(y, np.float64)
    except (TypeError, ValueError):
        raise InputError("y", "other values", "finite numbers") from None
    finite = np.isfinite(numbers)
    if not finite.all():
        raise InputError("y", float(numbers[~finite][0]), "finite numbers")
    return numbers


def check_targets(y: np.ndarray) -> None:
    """Check the targets of a regression, each column alone: all 0, or of usual sizes."""
    columns = y.reshape(len(y), -1).T
    for number, column in enumerate(columns):
        where = f"in column {number}" if len(columns) > 1 else ""
        check_range("y", peak_of(column), _LEAST_TARGET, _LARGEST_TARGET, where)


def label_signs(Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return +1 where an example has a label and −1 where it has not, (m, L)."""
    if not np.isin(Y, (0, 1)).all():
        given = float(Y[~np.isin(Y, (0, 1))][0])
        raise InputError("y", given, "0, 1, or NaN where a label is not known")
    counted = np.broadcast_to(weights > 0, Y.shape)
    positive, negative = ((value == Y) & counted for value in (1, 0))
    both = positive.any(axis=0) & negative.any(axis=0)
    if not both.all():
        label = int(np.argmin(both))
        raise InputError("y", f"one value for label {label}", "examples with and without each")
    return 2 * Y - 1


def entry_weights(omega: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the weights of the examples (m,), or of the entries (m, T) where some are missing."""
    if known.all():
        return omega
    weights = omega[:, None] * known
    if not weights.any(axis=0).all():
        column = int(np.argmin(weights.any(axis=0)))
        given = f"column {column} known where weights are 0"
        raise InputError("sample_weight", given, "a known entry of weight above 0 in each column")
    return weights
