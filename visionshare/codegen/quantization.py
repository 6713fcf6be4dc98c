"""Tables of small whole numbers, each row with a scale."""

from __future__ import annotations

import numpy as np

__all__ = ["quantized"]


def quantized(
    values: np.ndarray, bits: int, most: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers and the scale of each row, nearest to ``values = whole * scale``.

    Parameters
    ----------
    values : ndarray of shape (n, ...)
    bits : {8, 16}
        The largest absolute value of a row becomes 127 or 32767.
    most : ndarray of shape (n,), optional
        A smaller bound of a row's whole numbers.

    Returns
    -------
    whole : ndarray of int64, of the shape of ``values``
    scale : ndarray of shape (n,), float64
        1 for a row of zeros.

    Examples
    --------
    >>> whole, scale = quantized(np.array([[0.5, -1.0]]), 8)
    >>> whole.tolist(), (whole * scale[:, None]).round(2).tolist()
    ([[64, -127]], [[0.5, -1.0]])
    """
    flat = np.asarray(values, np.float64).reshape(len(values), -1)
    largest = np.abs(flat).max(axis=1, initial=0)
    limit = np.full(len(flat), 2 ** (bits - 1) - 1)
    if most is not None:
        limit = np.maximum(1, np.minimum(limit, most))
    scale = np.where(largest > 0, largest / limit, 1)
    whole = np.rint(flat / scale[:, None]).astype(np.int64)
    return whole.reshape(np.shape(values)), scale
