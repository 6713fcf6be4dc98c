"""Tables of small integers, each row with a scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.codegen.c_text import integer_type

# Parts of the largest value of a row that become the largest integer.
_CLIPS = np.linspace(0.25, 1, 31)


class Quantized(NamedTuple):
    """Integers and a scale per row: the values are about ``integers * scales``."""

    integers: np.ndarray
    scales: np.ndarray


class StoredRows(NamedTuple):
    """Rows of a table, their type in C, and the table of their scales where they have any."""

    values: np.ndarray
    type: str
    scales: dict[str, np.ndarray]


def quantize_rows(values: np.ndarray, bits: int, limits: np.ndarray | None = None) -> Quantized:
    """Return the nearest integers to the rows of a table, each row divided by its scale."""
    rows = np.asarray(values, np.float64).reshape(len(values), -1)
    largest = np.abs(rows).max(axis=1, initial=0)
    bound = np.full(len(rows), 2 ** (bits - 1) - 1)
    if limits is not None:
        bound = np.maximum(1, np.minimum(bound, limits))
    scales = np.where(largest > 0, largest / bound, 1)
    integers = np.rint(rows / scales[:, None]).astype(np.int64)
    return Quantized(integers.reshape(np.shape(values)), scales)


def stored_rows(values: np.ndarray, bits: int | None) -> StoredRows:
    """Return rows as a program holds them: floats, or integers whose sums are of floats."""
    if bits is None:
        return StoredRows(values, "float", {})
    integers, scales = quantize_rows(values, bits)
    return StoredRows(integers, integer_type(integers), {"scales": scales.astype(np.float32)})


def quantize_clipped(values: np.ndarray, bits: int) -> Quantized:
    """Return integers of few bits whose rows are nearest to a table's."""
    # A row's largest values may be cut: the scale is that of the least squared error.
    values = np.asarray(values, np.float64)
    bound = 2 ** (bits - 1) - 1
    largest = np.abs(values).max(axis=1, initial=0)
    largest = np.where(largest > 0, largest, 1)
    best = np.full(len(values), np.inf)
    scales = np.ones(len(values))
    for clip in _CLIPS:
        scale = clip * largest / bound
        rounded = np.clip(np.rint(values / scale[:, None]), -bound, bound) * scale[:, None]
        error = np.square(rounded - values).sum(axis=1)
        scales = np.where(error < best, scale, scales)
        best = np.minimum(error, best)
    integers = np.clip(np.rint(values / scales[:, None]), -bound, bound).astype(np.int64)
    return Quantized(integers, scales)
