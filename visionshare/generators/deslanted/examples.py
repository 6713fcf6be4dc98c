"""Small instances of families of deslanted images, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.deslanted.family import Deslanted
from visionshare.generators.patches.family import PatchTemplates

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], Deslanted]] = {
    "deslanted": lambda: Deslanted(PatchTemplates(3, 20, 3, (2.0,), n_patches=3000)),
}
