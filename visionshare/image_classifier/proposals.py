"""What there is to try: structures as wide as the budget allows, and pools for a greedy search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from visionshare.datasets import Augmentation, ImageSet, Preprocessing
from visionshare.generators import FeatureFamily
from visionshare.generators.inputs import raster_shape
from visionshare.generators.layers.integers.numbers import Bits
from visionshare.image_classifier.budget import Budget
from visionshare.image_classifier.structure import MapLayer, Structure
from visionshare.learners.fine_tuning.heads import UNITS
from visionshare.recipes import Recipe
from visionshare.recipes.schema import recipe_model

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
# Copies of each of few images, for weights on all features.
_DENSE_COPIES = 3
# Refits of weights that gradients will move anyhow.
_REFIT_TOL = 1e-3
# Peak rates of optimizers.
_RATES = {"adam": 1e-2, "muon": 3e-2}


@dataclass(frozen=True)
class Data:
    """What is known of the training images."""

    #: Rows, columns and values a pixel.
    raster: tuple[int, int, int]
    #: Number of images.
    n: int
    n_classes: int
    #: Whether ink lies on plain paper.
    is_glyphs: bool

    @staticmethod
    def of(images: ImageSet) -> Data:
        """Return what is known of some images."""
        shape = images.images.shape[1:]
        raster = raster_shape(shape)
        return Data(raster, len(images), len(images.classes), are_glyphs(images.images))

    @property
    def batch(self) -> int:
        """Images a step: few images make small steps, so that there are enough of them."""
        if self.n < 3000:
            return 32
        return 64 if self.n < 12_000 else 128

    @property
    def epochs(self) -> int:
        """Epochs of the last training: some thousands of steps, and at least 30 epochs."""
        return int(np.clip(round(6000 * self.batch / self.n), 30, 90))


@dataclass(frozen=True)
class Greedy:
    """A pool whose features are chosen greedily and remain as they are."""

    #: Name of a bundled pool, or an object.
    pool: str | FeatureFamily
    rounds: int
    #: Parameters of the pool.
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        name = self.pool if isinstance(self.pool, str) else type(self.pool).name
        return f"{self.rounds} rounds of {name}"


@dataclass(frozen=True)
class Dense:
    """A pool all of whose features get weights, by :class:`visionshare.DenseClassifier`."""

    #: Name of a bundled pool.
    pool: str
    #: Parameters of the pool.
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        network = self.parameters.get("network")
        return f"all features of {Path(network).name if network else self.pool}"


@dataclass(frozen=True)
class Proposal:
    """A structure or a pool, and how it is trained."""

    #: Features of each member.
    features: Structure | Greedy | Dense
    #: Deformations of the copies that each epoch sees.
    augmentation: Augmentation | None = None
    #: What the augmentation is called.
    words: str = "no copies"
    #: Numbers of bits of the integers that are learned.
    bits: Bits | None = None
    #: Classifiers with seeds of their own, whose scores have the mean.
    members: int = 1
    #: Smoothing of the labels, as ``label_smoothing`` of :class:`visionshare.FineTuning`.
    smoothing: float = 0.0
    #: The optimizer of fine-tuning, see :class:`visionshare.FineTuning`.
    optimizer: str = "adam"

    def __str__(self) -> str:
        if isinstance(self.features, Greedy):
            return str(self.features)
        several = f"mean of {self.members}: " if self.members > 1 else ""
        bits = "" if self.bits is None else f", {self.bits.templates}-bit templates"
        smooth = ", smoothed labels" if self.smoothing else ""
        steps = "" if self.optimizer == "adam" else f", {self.optimizer}"
        return f"{several}{self.features}{bits}, {self.words}{smooth}{steps}"

    @property
    def structure(self) -> Structure | None:
        """The structure, None of pools."""
        return self.features if isinstance(self.features, Structure) else None

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
        learner: dict[str, Any] = {"criterion": "orthogonal", "alpha": 1e-4}
        values: dict[str, Any] = {
            "name": "image-classifier",
            "description": str(self),
            "seed": seed,
            "data": {"source": "images", "height": height, "width": width, "mode": mode},
            "learner": learner,
        }
        if preprocessing is not None and preprocessing != Preprocessing():
            values["preprocessing"] = preprocessing.to_values()
        if self.members > 1:
            values["members"] = self.members
        if class_weight is not None:
            learner["class_weight"] = class_weight
        if isinstance(self.features, Greedy):
            assert isinstance(self.features.pool, str)
            learner["rounds"] = self.features.rounds
            parameters = dict(self.features.parameters)
            values["features"] = {"pool": self.features.pool, "parameters": parameters}
            return recipe_model()(**values)
        if isinstance(self.features, Dense):
            return self._dense_recipe(self.features, values)
        learner["rounds"] = self.features.n_templates
        learner["refit_tol"] = _REFIT_TOL
        values["features"] = self.features.features(2, _PATCHES)
        if self.augmentation is not None:
            values["deformations"] = self._deformations(copies=0)
        values["fine_tuning"] = self._tuning(self.features, data, epochs)
        if class_weight is not None:
            values["fine_tuning"]["class_weight"] = class_weight
        if self.bits is not None:
            values["quantization"] = {
                "template_bits": self.bits.templates,
                "weight_bits": self.bits.weights,
                "max_flash": max_flash,
            }
        return recipe_model()(**values)

    def _dense_recipe(self, features: Dense, values: dict[str, Any]) -> Recipe:
        """Return the recipe of all features of a pool, with the values of every recipe."""
        weights = {name: v for name, v in values["learner"].items() if name == "class_weight"}
        values["learner"] = {"kind": "dense", **weights}
        values["features"] = {"pool": features.pool, "parameters": features.parameters}
        if self.augmentation is not None:
            values["deformations"] = self._deformations(_DENSE_COPIES)
        return recipe_model("dense")(**values)

    def _deformations(self, copies: int) -> dict[str, Any]:
        """Return the section [deformations] of a recipe."""
        given = asdict(self.augmentation).items() if self.augmentation is not None else ()
        return {name: value for name, value in given if value is not None} | {"copies": copies}

    def _tuning(self, structure: Structure, data: Data, epochs: int) -> dict[str, Any]:
        """Return the section [fine_tuning] of a recipe."""
        steps = epochs * -(-data.n // data.batch)
        tuning: dict[str, Any] = {
            "epochs": epochs,
            "batch": data.batch,
            "rate": _RATES[self.optimizer],
            "optimizer": self.optimizer,
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
        return tuning


def _shaped(raster: tuple[int, int, int], depth: int, width: int) -> Structure | None:
    """Return a structure of so many layers of maps, from so many maps on; None if none fits."""
    side = min(raster[:2])
    layers = []
    for number in range(depth):
        # What follows needs some positions: those of templates in cells, and of each layer.
        needed = 4 * (depth - number)
        pools = (3, 2) if side > _LARGE else (2,)
        pool = next((p for p in pools if (side - 2) // p >= needed), 1)
        layers.append(MapLayer(width * 2**number, 3, pool))
        side = (side - 2) // pool
    if side < 4:
        return None
    grid = 3 if side >= 5 and side % 3 == 2 else 2
    n_templates = min(_MOST_TEMPLATES, max(8, (6 if depth else 4) * width))
    size = 3 if depth else min(7, max(3, side // 4))
    return Structure(tuple(layers), size, n_templates, grid)


def widest(
    data: Data,
    budget: Budget,
    depth: int,
    bits: Bits | None = None,
    members: int = 1,
    **others: Any,
) -> Structure | None:
    """Return the widest structure of so many layers within a budget; None if there is none."""
    # The others are attributes of structures. Of several members it is the structure of each.
    for width in _WIDTHS if bits is None else _WIDTHS_OF_FEW_BITS:
        structure = _shaped(data.raster, depth, width)
        if structure is None:
            return None
        structure = replace(structure, **others)
        if not structure.fits(data.raster):
            return None
        if budget.use(structure, data.raster, data.n_classes, bits, members) <= 1:
            return structure
    return None


def structures(
    data: Data, budget: Budget, bits: Bits | None = None, members: int = 1
) -> Iterator[Structure]:
    """Yield the widest structures within a budget, from the deepest on."""
    for depth in (2, 1, 0):
        found = widest(data, budget, depth, bits, members)
        if found is not None:
            yield found


def are_glyphs(images: np.ndarray) -> bool:
    """Return whether gray images show ink on plain paper."""
    # most of their borders are of one value.
    if images.ndim != 3 or min(images.shape[1:]) < 4:
        return False
    some = images[:: max(1, len(images) // 500)].astype(np.float32)
    sides = [some[:, 0], some[:, -1], some[:, 1:-1, 0], some[:, 1:-1, -1]]
    border = np.concatenate(sides, axis=1)
    paper = np.median(border, axis=1, keepdims=True)
    plain = np.mean(np.abs(border - paper) < 26, axis=1)
    return bool(np.mean(plain > 0.7) > 0.8)
