"""Rounding to few bits where examples say what matters: an error is made good by what follows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visionshare.codegen.quantization import Quantized, quantize_clipped

# Columns that make good for each other: a matrix of them squared is held a few times.
_TOGETHER = 4096
# Columns whose errors are passed on together.
_BLOCK = 128
# Part of the mean square that is added to all: columns that are hardly used keep finite errors.
_DAMPING = 0.01


def round_on_examples(
    values: np.ndarray, bits: int, columns: Callable[[int, int], np.ndarray]
) -> Quantized:
    """Return integers whose sums over examples are near a table's."""
    # Columns are rounded one after the other, those with large inputs first; what the columns
    # that are left can make good of an error is added to them, by least squares.
    values = np.asarray(values, np.float64)
    scales = quantize_clipped(values, bits).scales
    integers = np.empty(values.shape, np.int64)
    for start in range(0, values.shape[1], _TOGETHER):
        stop = min(start + _TOGETHER, values.shape[1])
        inputs = columns(start, stop)
        gram = (inputs.T @ inputs).astype(np.float64) / len(inputs)
        integers[:, start:stop] = round_by_moments(values[:, start:stop], scales, bits, gram)
    return Quantized(integers, scales)


def round_by_moments(
    values: np.ndarray, scales: np.ndarray, bits: int, gram: np.ndarray
) -> np.ndarray:
    """Return integers (k, p) whose sums are near a table's, given the inputs' moments."""
    from scipy.linalg import cho_factor, cho_solve, cholesky

    power = np.diag(gram).copy()
    order = np.argsort(-power, kind="stable")
    sorted_gram = gram[np.ix_(order, order)]
    p = len(order)
    sorted_gram[np.arange(p), np.arange(p)] += max(_DAMPING * power.mean(), 1e-30)
    inverse = cho_solve(cho_factor(sorted_gram, overwrite_a=True), np.eye(p), overwrite_b=True)
    # Row c says how an error of column c is spread over those after it.
    spread = cholesky(inverse, overwrite_a=True)
    left = values[:, order].copy()
    bound = 2 ** (bits - 1) - 1
    integers = np.empty(values.shape, np.int64)
    for start in range(0, p, _BLOCK):
        stop = min(start + _BLOCK, p)
        errors = np.empty((len(values), stop - start))
        for c in range(start, stop):
            chosen = np.clip(np.rint(left[:, c] / scales), -bound, bound)
            integers[:, order[c]] = chosen
            error = (left[:, c] - chosen * scales) / spread[c, c]
            left[:, c:stop] -= np.outer(error, spread[c, c:stop])
            errors[:, c - start] = error
        left[:, stop:] -= errors @ spread[start:stop, stop:]
    return integers
