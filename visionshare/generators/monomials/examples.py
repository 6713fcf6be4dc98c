"""Small instances of monomials, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.fourier.family import RandomFourier
from visionshare.generators.monomials.family import Monomials

__all__ = ["EXAMPLES"]

_FACTORS = ((0,), (1, 1), (2, 9, 4), (15, 15, 0, 3)) * 8

EXAMPLES: dict[str, Callable[[], Monomials]] = {
    "monomials": lambda: Monomials(RandomFourier(8, bandwidths=(6.0,)), _FACTORS),
}
