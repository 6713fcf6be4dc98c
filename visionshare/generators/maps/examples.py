"""Small instances of features on learned maps, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.maps.family import LearnedMaps
from visionshare.generators.patches.family import PatchTemplates

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], LearnedMaps]] = {
    "maps": lambda: LearnedMaps(
        PatchTemplates(2, 12, 2, masks="cells", padding=0, n_patches=2000), 3, 3, n_patches=2000
    ),
    "maps-of-maps": lambda: LearnedMaps(
        LearnedMaps(PatchTemplates(2, 8, 1, n_patches=900), 4, 2, 1, 1, n_patches=900),
        2,
        3,
        n_patches=900,
    ),
    "many-maps": lambda: LearnedMaps(
        LearnedMaps(
            PatchTemplates(2, 7, 2, masks="cells", padding=0, n_patches=900),
            11,
            2,
            1,
            n_patches=900,
        ),
        9,
        3,
        padding=1,
        n_patches=900,
    ),
}
