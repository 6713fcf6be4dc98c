"""Small instances of local binary patterns, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.lbp.family import LocalBinaryPatterns

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], LocalBinaryPatterns]] = {
    "lbp": LocalBinaryPatterns,
    "lbp-uniform": lambda: LocalBinaryPatterns("uniform", radius=1.5, points=6, grid=1),
}
