"""Rounding to few bits where examples say what matters: an error is made good by what follows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visionshare.codegen.quantization import Quantized, quantize_clipped

__all__ = ["round_by_moments", "round_on_examples"]

# Columns that make good for each other: a matrix of them squared is held a few times.
_TOGETHER = 4096
# Columns whose errors are passed on together.
_BLOCK = 128
# Part of the mean square that is added to all: columns that are hardly used keep finite errors.
_DAMPING = 0.01


def round_on_examples(
    values: np.ndarray, bits: int, columns: Callable[[int, int], np.ndarray]
) -> Quantized:
    """Return integers whose sums over examples are near those of a table.

    Columns are rounded one after the other, those with large inputs first; what the columns that
    are left can make good of an error is added to them, by least squares.

    Parameters
    ----------
    values : ndarray of shape (k, p)
        Weights: k sums of p inputs.
    bits : int
        As in :func:`visionshare.codegen.quantization.quantize_clipped`, whose scales they have.
    columns : callable
        Inputs (m, stop − start), float32, of the examples, from column ``start`` to ``stop``.

    References
    ----------
    B. Hassibi, D. Stork, "Second order derivatives for network pruning", NIPS 1992; E. Frantar,
    S. Ashkboos, T. Hoefler, D. Alistarh, "GPTQ", ICLR 2023.

    Examples
    --------
    Two inputs that are always equal: where one weight is rounded up, the other goes down.

    >>> x = np.repeat(np.arange(1.0, 9.0)[:, None], 2, axis=1)
    >>> weights = np.array([[7.0, 0.4], [7.0, 0.4]])
    >>> round_on_examples(weights, 4, lambda i, j: x[:, i:j]).integers.tolist()
    [[7, 0], [7, 0]]
    >>> weights = np.array([[6.4, 6.4], [7.0, 6.0]])
    >>> made = round_on_examples(weights, 4, lambda i, j: x[:, i:j])
    >>> abs(float((made.integers * made.scales[:, None])[0].sum()) - 12.8) < 0.5
    True
    """
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
    """Return integers (k, p) whose sums are near those of a table, given the inputs' moments.

    Parameters
    ----------
    values : ndarray of shape (k, p), float64
    scales : ndarray of shape (k,)
        What an integer 1 stands for, in each row.
    bits : int
    gram : ndarray of shape (p, p)
        Second moments of the inputs: the mean of x xᵀ.

    Examples
    --------
    Of two inputs that are always equal, one is rounded up where the other goes down.

    >>> gram = np.ones((2, 2))
    >>> round_by_moments(np.array([[0.5, 0.5]]), np.ones(1), 4, gram).tolist()
    [[0, 1]]
    """
    from scipy.linalg import cho_factor, cho_solve, cholesky

    power = np.diag(gram).copy()
    order = np.argsort(-power, kind="stable")
    sorted_gram = gram[np.ix_(order, order)]
    p = len(order)
    sorted_gram[np.arange(p), np.arange(p)] += max(_DAMPING * power.mean(), 1e-30)
    inverse = cho_solve(cho_factor(sorted_gram, overwrite_a=True), np.eye(p), overwrite_b=True)
    # Row c says how an error of column c is spread over those after it.
    spread = cholesky(inverse, overwrite_a=True)
    left, bound = values[:, order].copy(), 2 ** (bits - 1) - 1
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
