"""Small instances of features in whole numbers, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

from visionshare.generators.deslanted.family import Deslanted
from visionshare.generators.maps.family import LearnedMaps
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.quantized.family import QuantizedLayers
from visionshare.generators.units.family import Units

__all__ = ["EXAMPLES"]


def _patches(n: int = 7, grid: int = 2, padding: int = 0) -> PatchTemplates:
    return PatchTemplates(2, n, grid, masks="cells", padding=padding, n_patches=900)


EXAMPLES: dict[str, Callable[[], QuantizedLayers]] = {
    "quantized": lambda: QuantizedLayers(_patches(6, 3, 1), bits="ternary"),
    "quantized-maps": lambda: QuantizedLayers(
        Deslanted(LearnedMaps(LearnedMaps(_patches(), 5, 2, 1, n_patches=900), 4, 3, 1, 1, 900)),
        bits=8,
    ),
    "quantized-two-bits": lambda: QuantizedLayers(
        LearnedMaps(_patches(), 9, 3, padding=1, n_patches=900), bits=2
    ),
    "quantized-units": lambda: QuantizedLayers(
        Units(Deslanted(LearnedMaps(_patches(), 4, 3, n_patches=900)), n_units=24), bits=8
    ),
    "quantized-squares": lambda: QuantizedLayers(
        Units(_patches(), n_units=9, activation="square"), bits=8
    ),
}
