"""Small instances of Gabor filters, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.gabor.family import GaborBank

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], GaborBank]] = {
    "gabor": lambda: GaborBank(30, sigmas=(0.5, 2.0), phases=True, zero_mean=True),
    "gabor-inside": lambda: GaborBank(30, sigmas=(0.5, 1.0), border="inside", pooling="max"),
    "gabor-at": lambda: GaborBank(20, pooling="mean", positions=((0, 7), (1, 2, 6))),
}
