"""What there is to try: structures as wide as the limits allow, and pools for a greedy search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from visionshare.datasets import Augmentation, Preprocessing
from visionshare.generators import FeatureFamily
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.image_classifier.budget import Limits
from visionshare.learners.fine_tuning.heads import UNITS
from visionshare.recipes import Recipe
from visionshare.recipes.design.structure import MapLayer, Structure
from visionshare.recipes.schema import recipe_model

__all__ = ["Data", "Greedy", "Proposal", "structures", "widest"]

# Maps of the first layer, the most first; the other layers follow from it.
_WIDTHS = (24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1)
# Of few bits many fit into little flash, which is to be used.
_WIDTHS_OF_FEW_BITS = tuple(range(24, 0, -1))
# Images of so many pixels a side have larger cells.
_LARGE = 40
_PATCHES = 8000
# More of them take long to choose.
_MOST_TEMPLATES = 64
_SEARCH_IMAGES = 600
# Refits of weights that gradients will move anyhow.
_REFIT_TOL = 1e-3


@dataclass(frozen=True)
class Data:
    """What is known of the training images."""

    raster: tuple[int, int, int]
    n: int
    n_classes: int
    is_glyphs: bool

    @property
    def batch(self) -> int:
        """Images a step: few images make small steps, so that there are enough of them."""
        return 32 if self.n < 3000 else 64 if self.n < 12_000 else 128

    @property
    def epochs(self) -> int:
        """Epochs of the last training: some thousands of steps, and at least 30 epochs."""
        return int(np.clip(round(6000 * self.batch / self.n), 30, 90))


@dataclass(frozen=True)
class Greedy:
    """A pool whose features are chosen greedily and remain as they are."""

    pool: str | FeatureFamily
    rounds: int
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        name = self.pool if isinstance(self.pool, str) else type(self.pool).name
        return f"{self.rounds} rounds of {name}"


@dataclass(frozen=True)
class Proposal:
    """A structure or a pool, and how it is trained."""

    features: Structure | Greedy
    augmentation: Augmentation | None = None
    words: str = "no copies"
    bits: Bits | None = None
    members: int = 1
    smoothing: float = 0.0

    def __str__(self) -> str:
        if isinstance(self.features, Greedy):
            return str(self.features)
        several = f"mean of {self.members}: " if self.members > 1 else ""
        bits = "" if self.bits is None else f", {self.bits.templates}-bit templates"
        smooth = ", smoothed labels" if self.smoothing else ""
        return f"{several}{self.features}{bits}, {self.words}{smooth}"

    @property
    def structure(self) -> Structure | None:
        """The structure, None of pools."""
        return self.features if isinstance(self.features, Structure) else None

    def with_structure(self, **changes: Any) -> Proposal:
        """Return the proposal with a structure that differs."""
        assert isinstance(self.features, Structure)
        return replace(self, features=replace(self.features, **changes))

    def recipe(
        self,
        data: Data,
        *,
        epochs: int,
        seed: int = 0,
        class_weight: dict[Any, float] | str | None = None,
        preprocessing: Preprocessing | None = None,
        max_flash: int | None = None,
    ) -> Recipe:
        """Return the recipe that trains it."""
        height, width, n_values = data.raster
        mode = "color" if n_values == 3 else "gray"
        values: dict[str, Any] = {
            "name": "image-classifier",
            "description": str(self),
            "seed": seed,
            "data": {"source": "images", "height": height, "width": width, "mode": mode},
            "learner": {"criterion": "orthogonal", "alpha": 1e-4},
        }
        if preprocessing is not None and preprocessing != Preprocessing():
            values["preprocessing"] = preprocessing.to_values()
        if self.members > 1:
            values["members"] = self.members
        if class_weight is not None:
            values["learner"]["class_weight"] = class_weight
        if isinstance(self.features, Greedy):
            assert isinstance(self.features.pool, str)
            parameters = dict(self.features.parameters)
            values["features"] = {"pool": self.features.pool, "parameters": parameters}
            values["learner"]["rounds"] = self.features.rounds
            return recipe_model()(**values)
        structure = self.features
        values["features"] = structure.features(2, _PATCHES)
        values["learner"] |= {"rounds": structure.n_templates, "refit_tol": _REFIT_TOL}
        if self.augmentation is not None:
            values["deformations"] = {"copies": 0, **_plain(self.augmentation)}
        values["fine_tuning"] = self._tuning(data, epochs, class_weight)
        if self.bits is not None:
            templates, weights = self.bits
            few_bits = {"template_bits": templates, "weight_bits": weights}
            values["quantization"] = {**few_bits, "max_flash": max_flash}
        return recipe_model()(**values)

    def _tuning(
        self, data: Data, epochs: int, class_weight: dict[Any, float] | str | None
    ) -> dict[str, Any]:
        structure = self.structure
        assert structure is not None
        steps = epochs * -(-data.n // data.batch)
        tuning: dict[str, Any] = {
            "epochs": epochs,
            "batch": data.batch,
            "rate": 0.01,
            "head": structure.head,
            "weight_standardization": True,
            # Of the last steps, when the rate is low.
            "averaging": round(max(0.0, 1 - 20 / steps), 4),
            "search_images": min(_SEARCH_IMAGES, data.n),
            "deformed": self.augmentation is not None,
            "validation_fraction": 0.0,
            "label_smoothing": self.smoothing,
        }
        if structure.head in UNITS:
            tuning["n_units"] = structure.n_units
        if class_weight is not None:
            tuning["class_weight"] = class_weight
        return tuning


def _plain(augmentation: Augmentation) -> dict[str, Any]:
    from dataclasses import asdict

    return {name: value for name, value in asdict(augmentation).items() if value is not None}


def _shaped(raster: tuple[int, int, int], depth: int, width: int) -> Structure | None:
    """Return a structure of so many layers of maps, from so many maps on; None if none fits."""
    side, layers = min(raster[:2]), []
    for number in range(depth):
        left = depth - number - 1
        # What follows needs some positions: those of templates in cells, and of each layer.
        needed = 4 + 4 * left
        pools = (3, 2) if side > _LARGE else (2,)
        pool = next((p for p in pools if (side - 2) // p >= needed), 1)
        layers.append(MapLayer(width * 2**number, 3, pool))
        side = (side - 2) // pool
    if side < 4:
        return None
    grid = 3 if side >= 5 and side % 3 == 2 else 2
    n_templates = min(_MOST_TEMPLATES, max(8, 6 * width) if depth else max(8, 4 * width))
    size = 3 if depth else min(7, max(3, side // 4))
    structure = Structure(tuple(layers), size, n_templates, grid, "linear", 0, False)
    return structure if structure.fits(raster) else None


def widest(
    raster: tuple[int, int, int],
    n_classes: int,
    limits: Limits,
    depth: int,
    channels: tuple[str, ...] = (),
    head: str = "linear",
    n_units: int = 0,
    deslanted: bool = False,
    bits: Bits | None = None,
    members: int = 1,
) -> Structure | None:
    """Return the widest structure of so many layers that keeps within limits."""
    # None if none does. It is that of each of the members whose mean keeps within them.
    for width in _WIDTHS if bits is None else _WIDTHS_OF_FEW_BITS:
        structure = _shaped(raster, depth, width)
        if structure is None:
            return None
        structure = replace(
            structure, channels=channels, head=head, n_units=n_units, deslanted=deslanted
        )
        if not structure.fits(raster):
            return None
        if limits.hold(structure, raster, n_classes, bits, members):
            return structure
    return None


def structures(
    raster: tuple[int, int, int],
    n_classes: int,
    limits: Limits,
    bits: Bits | None = None,
    members: int = 1,
) -> Iterator[Structure]:
    """Yield the widest structures within limits, from the deepest on."""
    for depth in (2, 1, 0):
        found = widest(raster, n_classes, limits, depth, bits=bits, members=members)
        if found is not None:
            yield found
