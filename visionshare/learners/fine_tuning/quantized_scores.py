"""Scores of features in whole numbers, by weights that are rounded to few bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.integers.numbers import WholeNumbers
from visionshare.learners.fine_tuning.product_scores import ProductScores

# Whole numbers up to this are exact in float32.
_LARGEST_SCORE = 2**24


class WholeWeights(NamedTuple):
    """Scores of whole features: whole weights, intercepts, and the exponent of the scores."""

    weights: np.ndarray
    intercept: np.ndarray
    exponent: int


class QuantizedScores(ProductScores):
    """z = W x̃ + c with W rounded, so that scores of whole features are whole numbers."""

    def __init__(self, latent: ProductScores, exponents: np.ndarray, bits: int | str) -> None:
        super().__init__(
            latent.W, latent.Q, latent.c, latent.offset, latent.scale,
            latent.product_offset, latent.product_scale,
        )  # fmt: skip
        if latent.Q.size:
            raise InputError("head", "products", "another head, where weights are whole numbers")
        # One exponent for all of them: a table of one row.
        row = self._unstandardized().reshape(1, -1)
        of_features = np.tile(exponents, len(self.W))
        self._numbers = WholeNumbers.of(row, of_features, bits)

    @property
    def bits(self) -> int | str:
        """Bits of a weight."""
        return self._numbers.bits

    def _unstandardized(self) -> np.ndarray:
        return self.W * self.scale

    @property
    def used_weights(self) -> np.ndarray:
        """The rounded weights of standardized features, (k, n) float32."""
        row = self._unstandardized().reshape(1, -1)
        weights = self._numbers.weights(row).reshape(self.W.shape)
        # Weights of features that are constant do not count here, nor in intercepts.
        scale = np.where(self.scale > 0, self.scale, np.float32(np.inf))
        return np.asarray(weights / scale, np.float32)

    def whole(self) -> WholeWeights:
        """Return whole weights (k, n) and intercepts (k,), int64."""
        row = self._unstandardized().reshape(1, -1)
        weights = self._numbers.weights.whole(row).reshape(self.W.shape)
        rounded = self._numbers.weights(row).reshape(self.W.shape).astype(np.float64)
        exponent = int(self._numbers.sums[0])
        moved = self.c.astype(np.float64) - rounded @ self.offset.astype(np.float64)
        intercept = np.floor(np.ldexp(moved, -exponent) + 0.5).astype(np.int64)
        largest = int((255 * np.abs(weights).sum(axis=1) + np.abs(intercept)).max())
        if largest > _LARGEST_SCORE:
            accepted = f"scores up to {_LARGEST_SCORE}: fewer features, or fewer bits"
            raise InputError("weight_bits", f"scores up to {largest}", accepted)
        return WholeWeights(weights, intercept, exponent)
