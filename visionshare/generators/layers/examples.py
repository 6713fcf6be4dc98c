"""Small networks, for tests, fuzzing and exports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from visionshare.generators.layers.channels.layer import Channels
from visionshare.generators.layers.depthwise.layer import Depthwise
from visionshare.generators.layers.deslant.layer import Deslant
from visionshare.generators.layers.family.layer import Features
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.generators.layers.layer import Layer
from visionshare.generators.layers.network import Network
from visionshare.generators.layers.residual.layer import Residual
from visionshare.generators.layers.templates.layer import Templates
from visionshare.generators.layers.tuning import quantized
from visionshare.generators.layers.units.layer import Units
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.pixels.family import Pixels

__all__ = ["EXAMPLES", "INTEGERS"]


def _grid(n: int = 8, grid: int = 2) -> Templates:
    return Templates(n, 2, grid=grid, n_patches=900)


EXAMPLES: dict[str, Callable[[], Network]] = {
    "network": lambda: Network([_grid(12, 3)]),
    "network-of-few": lambda: Network([Templates(3, 3, pool=2, padding=1, n_patches=900), _grid()]),
    "network-of-many": lambda: Network(
        [
            Templates(11, 2, n_patches=900),
            Templates(9, 3, padding=1, pool=3, n_patches=900),
            _grid(),
        ]
    ),
    "network-deslanted": lambda: Network([Deslant(), Templates(4, 3, n_patches=900), _grid()]),
    "network-of-channels": lambda: Network(
        [Channels(("gray", "orientations"), 4, pool=2), _grid()]
    ),
    "network-normalized": lambda: Network(
        [
            Channels(("orientations", "gray", "magnitude"), 3, normalization="local", window=5),
            Features(Pixels()),
        ]
    ),
    "network-depthwise": lambda: Network(
        [
            Templates(3, 2, padding=1, n_patches=900),
            Depthwise(2, 3, padding=1, pool=2, n_patches=400),
            Depthwise(3, 2, grid=2, n_patches=400),
        ]
    ),
    "network-residual": lambda: Network(
        [Templates(5, 2, n_patches=900), Residual(3, n_patches=900), Residual(1), _grid()]
    ),
    "network-of-units": lambda: Network([Deslant(), _grid(), Units(20)]),
    "network-squared": lambda: Network(
        [Features(PatchTemplates(3, 12, 2, (2.0,), n_patches=900)), Units(15, "square")]
    ),
}


def _integers(bits: int | str, *layers: Layer) -> Callable[[np.ndarray], Network]:
    def made(images: np.ndarray) -> Network:
        return quantized(Network(list(layers)).fit(images), images, Bits(bits, bits))

    return made


#: Small networks of integers, made of images of bytes.
INTEGERS: dict[str, Callable[[np.ndarray], Network]] = {
    "ternary": _integers("ternary", Templates(6, 2, grid=3, padding=1, n_patches=900)),
    "maps": _integers(
        8,
        Deslant(),
        Templates(5, 2, n_patches=900),
        Templates(4, 3, padding=1, n_patches=900),
        _grid(7),
    ),
    "two-bits": _integers(2, Templates(9, 3, pool=2, padding=1, n_patches=900), _grid(7)),
    "units": _integers(8, Deslant(), Templates(4, 3, pool=2, n_patches=900), _grid(7), Units(24)),
    "depthwise": _integers(
        4,
        Templates(3, 2, n_patches=900),
        Depthwise(2, 3, padding=1, pool=2, n_patches=400),
        Depthwise(1, 3, padding=1, n_patches=400),
        _grid(7),
    ),
    "residual": _integers(
        8,
        Deslant(),
        Templates(4, 2, n_patches=900),
        Residual(3, n_patches=900),
        Depthwise(1, 3, padding=1, n_patches=400),
        Residual(3, n_patches=900),
        _grid(7),
        Units(9),
    ),
    "squares": _integers(8, _grid(7), Units(9, "square")),
}
