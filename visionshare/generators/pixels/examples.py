"""Small instances of pixels, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.pixels.family import Pixels

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], Pixels]] = {"pixels": Pixels}
