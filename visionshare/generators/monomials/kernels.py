"""Kernels of monomials: products of features or of columns, and weighted sums of products."""

from __future__ import annotations

import numpy as np
from numba import njit

from visionshare.machine.resources import run_kernel

# Images whose products stand side by side until they are weighted: few enough for a core's cache.
_WIDE = 32


@njit(cache=True, nogil=True)
def multiplied(
    values: np.ndarray, factors: np.ndarray, starts: np.ndarray, out: np.ndarray
) -> None:
    """Write the product of each monomial's factors, multiplied in their order."""
    # values: (n, n_factors), float32
    # starts: (n_monomials + 1,), int64
    # out: (n, n_monomials), float32
    for i in range(values.shape[0]):
        row = values[i]
        written = out[i]
        for m in range(starts.shape[0] - 1):
            first = starts[m]
            if starts[m + 1] - first == 2:
                written[m] = row[factors[first]] * row[factors[first + 1]]
                continue
            product = row[factors[first]]
            for k in range(first + 1, starts[m + 1]):
                product *= row[factors[k]]
            written[m] = product


@njit(cache=True, nogil=True)
def _side_by_side(
    values: np.ndarray, factors: np.ndarray, starts: np.ndarray, products: np.ndarray
) -> None:
    """Write the products of images' values (n_factors, wide), (n_monomials, wide)."""
    for m in range(starts.shape[0] - 1):
        row = products[m]
        first = values[factors[starts[m]]]
        if starts[m + 1] - starts[m] == 2:
            second = values[factors[starts[m] + 1]]
            for i in range(row.shape[0]):
                row[i] = first[i] * second[i]
            continue
        for i in range(row.shape[0]):
            row[i] = first[i]
        for k in range(starts[m] + 1, starts[m + 1]):
            factor = values[factors[k]]
            for i in range(row.shape[0]):
                row[i] *= factor[i]


@njit(cache=True, nogil=True)
def weighted_products(
    values: np.ndarray, factors: np.ndarray, starts: np.ndarray, weights: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Write sums of monomials times weights; the monomials themselves stay in a core's cache."""
    # values: (n, n_factors), float32
    # weights: (k, n_monomials), float32, contiguous
    # out: (n, k), float32
    n, n_factors = values.shape
    for tile in range((n + _WIDE - 1) // _WIDE):
        begin = tile * _WIDE
        count = min(_WIDE, n - begin)
        beside = np.zeros((n_factors, _WIDE), np.float32)
        for i in range(count):
            for j in range(n_factors):
                beside[j, i] = values[begin + i, j]
        products = np.empty((starts.shape[0] - 1, _WIDE), np.float32)
        _side_by_side(beside, factors, starts, products)
        sums = np.dot(weights, products)
        for i in range(count):
            for k in range(weights.shape[0]):
                out[begin + i, k] = sums[k, i]


@njit(cache=True, nogil=True)
def _pair_products(
    first: int, last: int, columns: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    for p in range(first, last):
        a = columns[left[p]]
        b = columns[right[p]]
        product = out[p]
        for i in range(product.shape[0]):
            product[i] = a[i] * b[i]


def pair_products(
    columns: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    """Write the products of pairs of columns."""
    run_kernel(_pair_products, len(left), columns, left, right, out)
