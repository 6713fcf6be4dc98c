"""Small instances of unions, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.fourier.family import RandomFourier
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.stumps.family import Stumps
from visionshare.generators.union.family import UnionOfFamilies

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], UnionOfFamilies]] = {
    "union": lambda: UnionOfFamilies(
        [PatchTemplates(3, 10, 2, (2.0,), n_patches=2000), Stumps(1), RandomFourier(5)]
    ),
}
