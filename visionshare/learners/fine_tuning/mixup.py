"""Mixup: each image of a batch is laid over another one, and so are their classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Mixture"]


class Mixture(NamedTuple):
    """Which images of a batch are mixed, and how much of each remains."""

    partners: np.ndarray
    shares: np.ndarray

    @classmethod
    def drawn(cls, n: int, alpha: float, rng: np.random.Generator) -> Mixture:
        """Return a mixture of n images at random."""
        partners = rng.permutation(n)
        shares = rng.beta(alpha, alpha, n)
        # The pairs are random: the larger fraction may as well be the first one's, whose class
        # remains that of the mixture.
        return cls(partners, np.maximum(shares, 1 - shares))

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the mixtures of values (n, …)."""
        # Whole numbers rounded, in their type, or floats. Bytes remain bytes: features see what
        # they will see in use, whatever their families accept.
        shares = self.shares.astype(np.float32).reshape(-1, *[1] * (values.ndim - 1))
        mixed = shares * values + (1 - shares) * values[self.partners]
        return np.rint(mixed).astype(values.dtype) if values.dtype.kind in "iu" else mixed
