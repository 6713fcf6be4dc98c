"""Small instances of random Fourier features, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.fourier.family import RandomFourier

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], RandomFourier]] = {
    "fourier": lambda: RandomFourier(30, bandwidths=(4.0, 8.0)),
}
