"""Small pixels, for tests, fuzzing and exports."""

from __future__ import annotations

from visionshare.generators.pixels.family import Pixels

__all__ = ["EXAMPLES"]

EXAMPLES = {"pixels": lambda: Pixels()}
