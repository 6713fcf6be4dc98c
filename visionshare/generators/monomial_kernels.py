"""The kernel of monomials: products of an image's features."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["multiplied", "multiplied_alone"]


def _multiplied(
    values: np.ndarray, factors: np.ndarray, starts: np.ndarray, out: np.ndarray
) -> None:
    """Write the product of each monomial's factors, multiplied in their order.

    Parameters
    ----------
    values : ndarray of shape (n, n_factors), float32
    factors : ndarray of int64
        Columns of ``values``, the monomials' one after the other.
    starts : ndarray of shape (n_monomials + 1,), int64
        Where each monomial's factors begin; each has one or more.
    out : ndarray of shape (n, n_monomials), float32
    """
    for i in prange(values.shape[0]):
        for m in range(starts.shape[0] - 1):
            product = values[i, factors[starts[m]]]
            for place in range(starts[m] + 1, starts[m + 1]):
                product *= values[i, factors[place]]
            out[i, m] = product


multiplied = njit(cache=True, nogil=True, parallel=True)(_multiplied)
# For one image: a second thread has nothing to do, and on a busy machine is waited for.
multiplied_alone = njit(cache=True, nogil=True)(_multiplied)
