"""Features of bytes that gradients move, at first as floats, then as whole numbers of few bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.base import FeatureFamily, check_images
from visionshare.generators.deslanted.family import Deslanted
from visionshare.generators.maps.family import LearnedMaps
from visionshare.generators.patches.family import PatchTemplates
from visionshare.generators.quantized.family import QuantizedLayers, as_bytes
from visionshare.generators.quantized.layers import DeslantLayer, Layer
from visionshare.generators.quantized.numbers import Bits
from visionshare.generators.tuning import QuantizableTunable
from visionshare.generators.units.family import Units

__all__ = ["ByteFeatures", "check_quantizable", "quantized"]

# A pixel v is v / 256 here and v / 255 elsewhere; templates of pixels make up for it.
_PIXEL_EXPONENT, _LARGER = -8, np.float32(256 / 255)


def check_quantizable(family: Any, argument: str = "family") -> None:
    """Check that features can be computed in whole numbers.

    Parameters
    ----------
    family : FeatureFamily
        Fitted or not.
    argument : str, default "family"
        What an error calls it.

    Raises
    ------
    InputError
        If it is no chain of deslanting, maps, patches in cells, and units.
    """
    parts = [family]
    while isinstance(parts[-1], (Deslanted, LearnedMaps, Units)):
        parts.append(parts[-1].family)
    last = parts[-1]
    if not isinstance(last, PatchTemplates) or last.masks != "cells":
        given = f"{type(last).__name__}" + ", Gaussian masks" * isinstance(last, PatchTemplates)
        raise InputError(argument, given, "PatchTemplates(masks='cells'), in maps or alone")
    below = [type(part) for part in parts]
    if Deslanted in below and set(below[: below.index(Deslanted)]) - {Units}:
        raise InputError(argument, "deslanted maps", "deslanting before all maps")
    if Units in below and set(below[: below.index(Units)]) - {Deslanted}:
        raise InputError(argument, "units inside maps", "units after all maps")


def quantized(
    family: FeatureFamily, images: np.ndarray, bits: Bits, n_jobs: int = 1
) -> QuantizedLayers:
    """Return a fitted family's features in whole numbers, without learning anew.

    Parameters
    ----------
    family : FeatureFamily
        See :func:`check_quantizable`.
    images : ndarray of shape (n, H, W) or (n, H, W, C)
        Images that say how large values become; a few hundred do.
    bits : Bits
    n_jobs : int, default 1
        Threads.
    """
    features = ByteFeatures(family)
    features.quantize(bits, images, n_jobs)
    return features.family()


class ByteFeatures:
    """Features of images of bytes; see :class:`visionshare.generators.tuning.Tunable`.

    Deslanting is that in whole numbers from the beginning. After :meth:`quantize` templates,
    biases and values are rounded in :meth:`forward`, and gradients pass the roundings unchanged,
    but for values that are cut off.

    Parameters
    ----------
    family : FeatureFamily
        Fitted; see :func:`check_quantizable`.
    wrap : callable, optional
        What is made of the features that move, such as
        :class:`visionshare.learners.fine_tuning.standardized_templates.StandardizedTemplates`.

    References
    ----------
    Y. Bengio, N. Léonard, A. Courville, "Estimating or propagating gradients through stochastic
    neurons for conditional computation", 2013: the straight-through estimator; B. Jacob et al.,
    "Quantization and training of neural networks for efficient integer-arithmetic-only
    inference", CVPR 2018, §3.
    """

    def __init__(
        self, family: Any, wrap: Callable[[Any], QuantizableTunable] | None = None
    ) -> None:
        check_quantizable(family)
        self._image_shape = tuple(family.image_shape_)
        self._deslant, inside = _split(family, self._image_shape)
        moving = _of_pixels(inside, _LARGER).tunable()
        self._part: QuantizableTunable = moving if wrap is None else wrap(moving)
        self.parameters, self.templates = self._part.parameters, self._part.templates
        self._layers: Callable[[], tuple[list[Layer], np.ndarray]] | None = None
        #: Exponents of the features, once they are quantized.
        self.exponents: np.ndarray | None = None

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs."""
        inputs = self._inputs(images)
        values, seen = self._part.forward(inputs, n_jobs)
        return values, (inputs, seen)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        return self._part.backward(seen[0], values, seen[1], G, n_jobs)

    def moved(self) -> None:
        """Take on the current parameters."""
        self._part.moved()

    def quantize(self, bits: Bits, images: np.ndarray, n_jobs: int = 1) -> None:
        """Round to whole numbers from now on, whose exponents these images say."""
        inputs = self._inputs(images)
        pixels = np.full((*self._image_shape, 1)[2], _PIXEL_EXPONENT)
        self.exponents = self._part.quantize(bits, inputs, pixels, n_jobs)

    def family(self) -> Any:
        """Return the family of these features with the current parameters."""
        if self.exponents is None:
            plain = _of_pixels(self._part.family(), 1 / _LARGER)
            return plain if self._deslant is None else Deslanted.of(plain)
        layers, places = self._part.whole_layers()
        before: list[Layer] = [] if self._deslant is None else [self._deslant]
        return QuantizedLayers.of([*before, *layers], places, self._image_shape)

    def _inputs(self, images: np.ndarray) -> np.ndarray:
        """Return what the first weighted layer sees: images in 256ths, float32."""
        raster = as_bytes(check_images(images, self._image_shape))
        if self._deslant is not None:
            raster = self._deslant.transform(raster)
        values = raster.astype(np.float32).reshape(len(raster), *self._image_shape)
        return np.ldexp(values, _PIXEL_EXPONENT)


def _split(family: Any, shape: tuple[int, ...]) -> tuple[DeslantLayer | None, Any]:
    """Return the layer that deslants, if there is one, and the family without it."""
    if isinstance(family, Units):
        # Units of features of deslanted images are features of deslanted images.
        deslant, inside = _split(family.part_, shape)
        return deslant, family.of(inside, family.directions_, family.offsets_)
    if not isinstance(family, Deslanted):
        return None, family
    rows, cols, channels = (*shape, 1)[:3]
    return DeslantLayer((rows, cols, channels)), family.part_


def _of_pixels(family: Any, factor: float) -> Any:
    """Return a family whose templates of pixels are multiplied."""
    if isinstance(family, Units):
        return family.of(_of_pixels(family.part_, factor), family.directions_, family.offsets_)
    if isinstance(family, LearnedMaps):
        return family.of(family.part_, family.templates_ * np.float32(factor), family.biases_)
    copy = family.take(np.arange(family.n_features_))
    copy.templates_ = np.asarray(copy.templates_ * np.float32(factor), np.float32)
    return copy
