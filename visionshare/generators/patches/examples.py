"""Small instances of patch templates, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.patches.family import PatchTemplates

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], PatchTemplates]] = {
    "patches": lambda: PatchTemplates(3, 40, 3, (2.0, 3.0), n_patches=3000),
    "patches-wide": lambda: PatchTemplates(5, 30, 2, (20.0,), cut=0.1, padding=5, n_patches=3000),
}
