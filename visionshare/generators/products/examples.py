"""Small instances of products of inputs, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.products.family import Products

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], Products]] = {"products": Products}
