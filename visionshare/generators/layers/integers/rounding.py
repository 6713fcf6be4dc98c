"""What whole numbers of few bits stand for: multiples of powers of two.

A sum of weights times inputs is rescaled by a shift, never by a multiplication:
``shifted(x, s)`` is the one definition of it. See docs/decisions/few-bits.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visionshare.errors import InputError

# Exponents of numbers that are all zero, and the smallest that are chosen.
_SMALLEST = -60
# Exponents below that of the largest number that are tried: ever more numbers are cut off.
_TRIED = 4


class NumberFormat(NamedTuple):
    """Whole numbers of few bits."""

    low: int
    high: int
    odd: bool = False

    def nearest(self, values: np.ndarray) -> np.ndarray:
        """Return the nearest numbers of the format, halves up, as floats."""
        whole = 2 * np.floor(values / 2) + 1 if self.odd else np.floor(values + 0.5)
        return np.asarray(np.clip(whole, self.low, self.high))

    def holds(self, numbers: np.ndarray) -> bool:
        """Return whether all of some whole numbers are of the format."""
        return bool(np.array_equal(self.nearest(np.asarray(numbers, np.float64)), numbers))


#: Formats of weights, by their bits.
FORMATS: dict[int | str, NumberFormat] = {
    8: NumberFormat(-127, 127),
    4: NumberFormat(-7, 7),
    2: NumberFormat(-3, 3, odd=True),
    "ternary": NumberFormat(-1, 1),
}
#: The format of what a layer gives the next one.
ACTIVATIONS = NumberFormat(0, 255)


def format_of(argument: str, bits: int | str) -> NumberFormat:
    """Return the format of weights of so many bits."""
    if isinstance(bits, bool) or bits not in FORMATS:
        raise InputError(argument, bits, "8, 4, 2 or 'ternary'")
    return FORMATS[bits]


class Rounding(NamedTuple):
    """Values as whole numbers times 2^exponents."""

    numbers: NumberFormat
    exponents: np.ndarray

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the nearest values that there are, float32."""
        nearest = self.numbers.nearest(np.ldexp(values, -self.exponents))
        return np.asarray(np.ldexp(nearest, self.exponents), np.float32)

    def whole(self, values: np.ndarray) -> np.ndarray:
        """Return the whole numbers of the nearest values, int64."""
        return self.numbers.nearest(np.ldexp(values, -self.exponents)).astype(np.int64)

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Return which values are not cut off at the top."""
        return np.asarray(values <= np.ldexp(np.float32(self.numbers.high), self.exponents))


def best_exponents(rows: np.ndarray, numbers: NumberFormat) -> np.ndarray:
    """Return the exponent of each row whose rounding has the smallest squared error."""
    # (n,) int64.
    rows = np.asarray(rows, np.float64)
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0), 2.0**_SMALLEST)
    first = np.ceil(np.log2(largest / numbers.high)).astype(np.int64)
    tried = first[:, None] - np.arange(_TRIED)
    errors = [
        np.square(Rounding(numbers, exponents[:, None])(rows) - rows).sum(axis=1)
        for exponents in tried.T
    ]
    return np.asarray(first - np.argmin(errors, axis=0))


def shifted(sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return whole numbers divided by 2^shifts, rounded to the nearest, halves up, int64."""
    sums = np.asarray(sums, np.int64)
    shifts = np.asarray(shifts, np.int64)
    halves = np.where(shifts > 0, np.int64(1) << np.maximum(shifts - 1, 0), 0)
    return np.asarray((sums + halves) >> shifts)
