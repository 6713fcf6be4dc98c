"""Small instances of units, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.pixels.family import Pixels
from visionshare.generators.units.family import Units

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, Callable[[], Units]] = {
    "units": lambda: Units(PatchTemplates(3, 12, 2, (2.0,), n_patches=2000), n_units=20),
    "units-squared": lambda: Units(Pixels(), n_units=15, activation="square"),
}
