"""Checks of the descriptions of layers, as files hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.states import Arrays, State

_MOST_POSITIONS = 65536


def float_array(arrays: Arrays, name: str, dimensions: int) -> np.ndarray:
    """Return a float32 array of a description."""
    array = arrays.get(name)
    if array is None or array.dtype != np.float32 or array.ndim != dimensions:
        given = None if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(name, given, f"float32 of {dimensions} dimensions")
    if not np.isfinite(array).all():
        raise InputError(name, "NaN or infinity", "finite values")
    return np.ascontiguousarray(array)


def int_vector(state: State, name: str) -> np.ndarray:
    """Return a list of whole numbers of a description as int64."""
    values = state.get(name)
    accepted = f"a list of 1 to {_MOST_POSITIONS} whole numbers"
    if not isinstance(values, list) or not 1 <= len(values) <= _MOST_POSITIONS:
        raise InputError(name, type(values).__name__, accepted)
    if not all(type(value) is int and abs(value) <= _MOST_POSITIONS for value in values):
        raise InputError(name, "others", accepted)
    return np.array(values, np.int64)


def check_pads(value: Any) -> tuple[int, int]:
    """Return the zero pixels at both ends of rows and columns."""
    valid = isinstance(value, list) and len(value) == 2
    if not valid or not all(type(pad) is int and 0 <= pad <= _MOST_POSITIONS for pad in value):
        raise InputError("pads", value, "two whole numbers")
    return value[0], value[1]


def check_cells(cells: np.ndarray, positions: int) -> None:
    """Check the cells of an axis: each of 0, 1, 2, … has a position, −1 stands for none."""
    if len(cells) > positions:
        raise InputError("cells", len(cells), f"at most {positions}, one per position")
    used = np.unique(cells[cells >= 0])
    complete = len(used) > 0 and np.array_equal(used, np.arange(len(used)))
    if not complete or int(cells.min()) < -1:
        raise InputError("cells", cells.tolist()[:20], "cells 0, 1, 2, …, or −1")


def check_sources(sources: np.ndarray, n: int, channels: int) -> None:
    """Check the channel of each of ``n`` templates."""
    if sources.shape != (n,) or (sources < 0).any() or (sources >= channels).any():
        raise InputError("sources", sources.tolist()[:20], f"{n} channels below {channels}")
