"""Features that layers of whole numbers compute of images of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily, Ids, check_features, check_images
from visionshare.generators.layers import LayerSummary
from visionshare.generators.parameters import unfitted_copy
from visionshare.generators.quantized.layers import CellLayer, Layer, UnitLayer
from visionshare.generators.quantized.numbers import Bits
from visionshare.generators.quantized.rounding import format_of
from visionshare.generators.quantized.states import layers_from_state, layers_to_state
from visionshare.generators.states import check_image_shape, check_state, family_state
from visionshare.resources import run_blocks

__all__ = ["QuantizedLayers", "as_bytes"]

# Images of one call of the kernels.
_AT_ONCE = 32
# Images that say how large values become.
_MEASURED = 1000


def as_bytes(images: np.ndarray) -> np.ndarray:
    """Return checked images as uint8; floats from 0 to 1 become bytes, to the nearest, halves up.

    Examples
    --------
    >>> as_bytes(np.array([-1.0, 0.5, 2.0], np.float32)).tolist()
    [0, 128, 255]
    """
    if images.dtype == np.uint8:
        return images
    scaled = np.floor(np.clip(images, 0, 1) * np.float32(255) + np.float32(0.5))
    return np.asarray(scaled, np.uint8)


class QuantizedLayers(FeatureFamily):
    """The features of a family in whole numbers of few bits, the same on every machine.

    Images are bytes. Layers give bytes: sums of products of 32 bits, a maximum, a shift. A
    classifier of such features whose weights are whole numbers too, as
    :func:`visionshare.learners.fine_tune` learns them, is exported as C without floating point.

    Parameters
    ----------
    family : FeatureFamily
        Unfitted: ``PatchTemplates(masks="cells")``, alone, of maps, of deslanted images, or under
        units.
    bits : {8, 4, 2, "ternary"}, default 8
        Of templates and of the weights of units.

    Attributes
    ----------
    layers_ : list of Layer
        What computes the features, one after the other.
    places_ : ndarray of shape (n_features,), int64
        Where each feature is in what the last layer gives.
    n_features_ : int
    image_shape_ : tuple of int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from visionshare import PatchTemplates
    >>> images = (load_digits().images * 15).astype(np.uint8)
    >>> patches = PatchTemplates(3, 8, grid=2, masks="cells", n_patches=2000)
    >>> family = QuantizedLayers(patches, bits=4).fit(images)
    >>> values = family.transform(images)
    >>> bool((values == values.astype(np.uint8)).all()), family.table_bytes
    (True, 64)
    """

    name: ClassVar[str] = "quantized"
    inner_families: ClassVar[str] = "one"
    in_whole_numbers: ClassVar[bool] = True
    layers_: list[Layer]
    places_: np.ndarray

    def __init__(self, family: Any = None, bits: int | str = 8) -> None:
        self.family = family
        self.bits = bits

    @classmethod
    def of(
        cls, layers: Sequence[Layer], places: np.ndarray, image_shape: tuple[int, ...]
    ) -> QuantizedLayers:
        """Return the features at some places of what layers give.

        Raises
        ------
        InputError
            If the layers do not follow each other, or a place is none.
        """
        shape = (*image_shape, 1)[:3]
        for layer in layers:
            if tuple(layer.in_shape) != tuple(shape):
                raise InputError("layers", layer.in_shape, f"a layer of images of shape {shape}")
            shape = layer.out_shape
        made = cls()
        made.layers_, made.image_shape_ = list(layers), tuple(image_shape)
        made.places_ = check_features(np.asarray(places), int(np.prod(shape)))
        made.n_features_ = len(made.places_)
        return made

    def check_parameters(self) -> None:
        """Check all parameters, the family's too, without images."""
        from visionshare.generators.quantized.tuning import check_quantizable

        if not isinstance(self.family, FeatureFamily):
            raise InputError("family", self.family, "a family such as PatchTemplates()")
        format_of("bits", self.bits)
        check_quantizable(self.family)
        self.family.check_parameters()

    def fit(self, images: np.ndarray, y: np.ndarray | None = None) -> QuantizedLayers:
        """Fit the family, and choose the numbers that its templates and values are rounded to."""
        from visionshare.generators.quantized.tuning import quantized

        self.check_parameters()
        raster = as_bytes(self._see(images)).reshape(np.shape(images))
        part = unfitted_copy(self.family).fit(raster, y)
        measured = raster[:: max(1, len(raster) // _MEASURED)]
        made = quantized(part, measured, Bits(self.bits, self.bits))
        self.layers_, self.places_ = made.layers_, made.places_
        self.n_features_ = len(self.places_)
        return self

    def transform(self, images: np.ndarray, features: Ids = None, n_jobs: int = 1) -> np.ndarray:
        """Return features (n_images, n), float32: whole numbers from 0 to 255."""
        places = self.places_[check_features(features, self.n_features_)]
        raster = check_images(images, self.image_shape_)
        out = np.empty((len(raster), len(places)), np.float32)

        def block(start: int, stop: int) -> None:
            values = as_bytes(raster[start:stop])
            for layer in self.layers_:
                values = layer.transform(values)
            out[start:stop] = values.reshape(len(values), -1)[:, places]

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        return out

    def weighted_sums(self, images: np.ndarray, weights: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Return sums of all features times weights, float32: exact for whole weights.

        See :class:`visionshare.generators.base.FeatureFamily`. Whole numbers are exact up to 2^24.
        """
        return super().weighted_sums(images, weights, n_jobs)

    def macs(self, features: Ids = None) -> int:
        """Return the multiply-accumulates per image of these features together."""
        ids = check_features(features, self.n_features_)
        if len(ids) == 0:
            return 0
        before = sum(layer.macs for layer in self.layers_[:-1])
        return before + _restricted(self.layers_[-1], self.places_[ids])[0].macs

    def layers(self) -> list[LayerSummary]:
        """Return one line for each layer."""
        return [
            LayerSummary(
                f"{self.name} {layer.kind}",
                layer.out_shape,
                layer.out_shape[2] if isinstance(layer, CellLayer) else None,
                layer.n_numbers,
                layer.macs,
            )
            for layer in self.layers_
        ]

    @property
    def table_bytes(self) -> int:
        """Bytes of all tables, packed as C holds them."""
        return sum(layer.nbytes for layer in self.layers_)

    def describe(self, feature: int) -> dict[str, Any]:
        """Return the place of the feature, and the weights of the template that it is of."""
        place = int(self.places_[check_features(np.array([feature]), self.n_features_)[0]])
        described: dict[str, Any] = {"kind": self.name, "place": place}
        last = self.layers_[-1]
        if isinstance(last, (CellLayer, UnitLayer)):
            number = place % len(last.weights)
            described |= {"weights": last.weights[number], "bias": int(last.biases[number])}
        return described

    def take(self, features: np.ndarray) -> QuantizedLayers:
        """Return the family restricted to these features, in this order."""
        ids = check_features(features, self.n_features_)
        last, places = _restricted(self.layers_[-1], self.places_[ids])
        taken = self.of([*self.layers_[:-1], last], places, self.image_shape_)
        taken.family, taken.bits = self.family, self.bits
        return taken

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        layers, arrays = layers_to_state(self.layers_)
        arrays["places"] = self.places_
        return family_state(self, layers=layers), arrays

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> QuantizedLayers:
        """Return the family that :meth:`to_state` described."""
        check_state(state, arrays, cls.name, {"places": 1})
        shape = check_image_shape(state.get("image_shape"))
        if len(shape) < 2:
            raise InputError("image_shape", shape, "that of images")
        layers = layers_from_state(state.get("layers"), arrays, (*shape, 1)[:3])
        return cls.of(layers, arrays["places"], shape)


def _restricted(layer: Layer, places: np.ndarray) -> tuple[Layer, np.ndarray]:
    """Return a last layer with the templates or units in use, and where the places are then."""
    from dataclasses import replace

    if not isinstance(layer, (CellLayer, UnitLayer)) or len(places) == 0:
        return layer, places
    n = len(layer.weights)
    used, number = np.unique(places % n, return_inverse=True)
    kept = replace(
        layer, weights=layer.weights[used], biases=layer.biases[used], shifts=layer.shifts[used]
    )
    return kept, places // n * len(used) + number
