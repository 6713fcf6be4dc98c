"""The numbers that a layer in training is rounded to: formats, and exponents chosen from data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from visionshare.generators.layers.integers.rounding import (
    ACTIVATIONS,
    NumberFormat,
    Rounding,
    best_exponents,
    format_of,
)

#: Signed bytes that are squared, and the shift of their squares.
ROOTS = NumberFormat(-127, 127)
SQUARE_SHIFT = 6
_LARGEST_BIAS = 2**29
_LARGEST_SHIFT = 30


class Bits(NamedTuple):
    """Bits of templates, and of weights of units; others of the first layer and of scores."""

    templates: int | str
    weights: int | str
    first: int | str | None = None
    scores: int | str | None = None


@dataclass(frozen=True)
class WholeNumbers:
    """What weights, sums and values of a layer are rounded to."""

    bits: int | str
    weights: Rounding
    sums: np.ndarray
    values: Rounding
    roots: Rounding | None = None

    @classmethod
    def of(cls, weights: np.ndarray, inputs: np.ndarray, bits: int | str) -> WholeNumbers:
        """Choose exponents of weights, of those that err least; values come later."""
        numbers = format_of("bits", bits)
        contributions = np.ldexp(weights.astype(np.float64), inputs)
        sums = best_exponents(contributions.reshape(len(weights), -1), numbers)
        of_each = sums.reshape(-1, *(1,) * (weights.ndim - 1)) - inputs
        return cls(bits, Rounding(numbers, of_each), sums, Rounding(ACTIVATIONS, sums))

    def with_sums(self, sums: np.ndarray, inputs: np.ndarray) -> WholeNumbers:
        """Return the same with other exponents of sums, for inputs of these exponents."""
        of_each = sums.reshape(-1, *(1,) * (self.weights.exponents.ndim - 1)) - inputs
        weights = Rounding(self.weights.numbers, of_each)
        return replace(self, weights=weights, sums=sums, values=Rounding(ACTIVATIONS, sums))

    def measured(self, values: np.ndarray) -> WholeNumbers:
        """Return the same with exponents for values (..., n) that were measured."""
        return replace(self, values=Rounding(ACTIVATIONS, self._exponents(values, ACTIVATIONS)))

    def measured_roots(self, sums: np.ndarray) -> WholeNumbers:
        """Return the same with exponents for sums (m, n) whose squares are the values."""
        exponents = self._exponents(sums, ROOTS)
        values = Rounding(ACTIVATIONS, 2 * exponents + SQUARE_SHIFT)
        return replace(self, roots=Rounding(ROOTS, exponents), values=values)

    def _exponents(self, values: np.ndarray, numbers: NumberFormat) -> np.ndarray:
        best = best_exponents(values.reshape(-1, values.shape[-1]).T, numbers)
        # Nothing is finer than a sum.
        return np.clip(best, self.sums, self.sums + _LARGEST_SHIFT)

    def biases(self, biases: np.ndarray) -> np.ndarray:
        """Return biases as sums can hold them, float32."""
        return np.asarray(
            np.ldexp(self.whole_biases(biases).astype(np.float64), self.sums), np.float32
        )

    def whole_biases(self, biases: np.ndarray) -> np.ndarray:
        """Return biases in the unit of the sums, int64."""
        whole = np.floor(np.ldexp(biases.astype(np.float64), -self.sums) + 0.5)
        return np.clip(whole, -_LARGEST_BIAS, _LARGEST_BIAS).astype(np.int64)

    @property
    def shifts(self) -> np.ndarray:
        """By how much sums are shifted, (n,) int64."""
        exponents = self.values.exponents if self.roots is None else self.roots.exponents
        return np.asarray(exponents - self.sums)
