"""Whole weights of features and of products of two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from visionshare.codegen.whole_numbers import WholeFeatures

# Sums of sums, as class_scales takes them.
_LARGEST_SUM = 2**48


@dataclass(frozen=True)
class PairTable:
    """Weights in whole numbers, and the sums that they make of images."""

    base: WholeFeatures
    pairs: np.ndarray
    weights: np.ndarray
    singles: np.ndarray
    shift: int
    bits: int

    def square(self) -> np.ndarray:
        """Return the weights of pairs as lower triangles (k, n, n)."""
        k, n = self.singles.shape
        every = np.zeros((k, n, n), np.int64)
        every[:, self.pairs[:, 0], self.pairs[:, 1]] = self.weights
        return every

    def largest(self) -> np.ndarray | None:
        """Return bounds of the absolute sums (k,); None where they would be too large."""
        top = self.base.top
        n = self.singles.shape[1]
        most = np.bincount(self.pairs[:, 0], minlength=n).max()
        inner = (np.abs(self.singles) << self.shift).max(initial=0)
        inner += np.abs(self.weights).max(initial=0) * top * most
        bound = np.full(len(self.singles), inner * top * n)
        # Packed weights are summed plus 8 first.
        if inner + 16 * top * most >= 2**31 or bound.max() >= _LARGEST_SUM:
            return None
        return bound

    def sums(self, images: np.ndarray) -> np.ndarray:
        """Return the sums (n_images, k), int64, of images."""
        f = self.base.evaluate(images)
        sums = np.empty((len(f), len(self.weights)), np.int64)
        for c, table in enumerate(self.square()):
            sums[:, c] = (f * (f @ table.T + (self.singles[c] << self.shift))).sum(axis=1)
        return sums


def by_two(integers: np.ndarray, bits: int) -> np.ndarray:
    """Return a table of two classes at a time, value after value."""
    # Values of 4 bits share a byte; 8 is added to each.
    k, n = integers.shape
    even = np.zeros((k + k % 2, n), np.int64)
    even[:k] = integers
    first = even[0::2]
    second = even[1::2]
    if bits == 4:
        return first + 8 | (second + 8) << 4
    return np.stack([first, second], axis=2)
