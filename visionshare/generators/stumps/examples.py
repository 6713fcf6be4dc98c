"""Small instances of stumps, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.stumps.family import Stumps

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], Stumps]] = {"stumps": lambda: Stumps(3)}
