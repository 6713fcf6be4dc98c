"""Maps whose templates and biases gradients move, under features that move too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from visionshare.generators.base import check_images
from visionshare.generators.inputs import as_lines
from visionshare.generators.quantized.layers import CellLayer, Layer
from visionshare.generators.quantized.numbers import Bits, WholeNumbers
from visionshare.generators.tuning import both_gradients
from visionshare.resources import run_blocks

if TYPE_CHECKING:
    from visionshare.generators.maps.family import LearnedMaps
    from visionshare.generators.tuning import QuantizableTunable, TunableOnMaps

__all__ = ["TunableMaps", "tunable"]

# Images whose gradients are summed together, in the same order on any number of threads.
_AT_ONCE = 32


def tunable(family: LearnedMaps) -> TunableMaps:
    """Return the features of a fitted family as a function of parameters that gradients move."""
    return TunableMaps(family)


class TunableMaps:
    """Features of maps: templates and biases of the maps move, and what the family inside has.

    Parameters
    ----------
    family : LearnedMaps
        Of a family that is tunable itself, and whose gradients in its images are known.

    Attributes
    ----------
    parameters : list of ndarray, float32
        Templates (n_maps, q, q, C) in units of their root mean square at the start, biases
        (n_maps,), and those of the family inside.
    """

    def __init__(self, family: LearnedMaps) -> None:
        self._family = family.of(family.part_, family.templates_.copy(), family.biases_.copy())
        self._part = cast("TunableOnMaps", family.part_.tunable())
        size = np.sqrt(np.mean(np.square(family.templates_), axis=(1, 2, 3), keepdims=True))
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self._templates = self._family.templates_ / self._size
        self._biases = self._family.biases_.copy()
        self._numbers: WholeNumbers | None = None
        self.parameters = [self._templates, self._biases, *self._part.parameters]
        self.templates = (0, *(2 + position for position in self._part.templates))

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return features (n, n_features), float32, and what :meth:`backward` needs."""
        maps, places = self._family.maps_and_places(images, n_jobs)
        if self._numbers is not None:
            # What is cut off has no gradient.
            places[~self._numbers.values.inside(maps)] = -1
            maps = self._numbers.values(maps)
        values, seen = self._part.forward(maps, n_jobs)
        return values, (maps, places, seen)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_if G_if x_if."""
        maps, places, inner = seen
        of_part, of_maps = both_gradients(self._part, maps, values, inner, G, n_jobs)
        return [*self._own_gradients(images, places, of_maps, n_jobs), *of_part]

    def image_gradients(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Return the gradients in the images' values of Σ_if G_if x_if, (n, H, W, C), float32."""
        maps, places, inner = seen
        of_maps = self._part.image_gradients(maps, values, inner, G, n_jobs)
        return self._below(images, places, of_maps, n_jobs)

    def both_gradients(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return what :meth:`backward` and :meth:`image_gradients` do; those in maps are shared."""
        maps, places, inner = seen
        of_part, of_maps = both_gradients(self._part, maps, values, inner, G, n_jobs)
        own = self._own_gradients(images, places, of_maps, n_jobs)
        return [*own, *of_part], self._below(images, places, of_maps, n_jobs)

    def _own_gradients(
        self, images: np.ndarray, places: np.ndarray, of_maps: np.ndarray, n_jobs: int
    ) -> list[np.ndarray]:
        """Return the gradients in templates and biases for those in the maps."""
        from visionshare.generators.maps.tuning_kernels import template_gradients

        family, raster = self._family, check_images(images, self._family.image_shape_)
        lines = as_lines(raster)
        blocks, q = -(-len(raster) // _AT_ONCE), family.size
        templates = np.zeros((blocks, family.n_maps, q, family.templates_[0, 0].size), np.float32)
        biases = np.zeros((blocks, len(family.biases_)), np.float32)

        def block(start: int, stop: int) -> None:
            number = start // _AT_ONCE
            template_gradients(
                lines[start:stop], places[start:stop], of_maps[start:stop],
                family.padding, family.pool, templates[number], biases[number],
            )  # fmt: skip

        run_blocks(block, len(raster), _AT_ONCE, n_jobs)
        total = templates.sum(axis=0).reshape(family.templates_.shape)
        return [total * self._size, biases.sum(axis=0)]

    def _below(
        self, images: np.ndarray, places: np.ndarray, of_maps: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Return the gradients in the images' values for those in the maps."""
        from visionshare.generators.maps.tuning_kernels import image_gradients

        family = self._family
        out = np.empty(check_images(images, family.image_shape_).shape, np.float32)
        lines = as_lines(out)
        templates = as_lines(family.templates_)

        def block(start: int, stop: int) -> None:
            image_gradients(
                places[start:stop], of_maps[start:stop], templates, family.padding, family.pool,
                lines[start:stop],
            )  # fmt: skip

        run_blocks(block, len(out), _AT_ONCE, n_jobs)
        return out

    def moved(self) -> None:
        """Take on the current parameters."""
        self._take_on()
        self._part.moved()

    def _take_on(self) -> None:
        """Take on the templates and biases of the maps."""
        templates, biases, numbers = self._templates * self._size, self._biases, self._numbers
        family = self._family
        family.templates_ = templates if numbers is None else numbers.weights(templates)
        family.biases_ = biases.copy() if numbers is None else numbers.biases(biases)

    def quantize(
        self, bits: Bits, images: np.ndarray, exponents: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Round templates, biases and maps from now on; return the exponents of the features."""
        templates = self._templates * self._size
        self._numbers = WholeNumbers.of(templates, exponents, bits.templates)
        self._take_on()
        maps = self._family.maps(images, n_jobs)
        self._numbers = self._numbers.measured(maps)
        values = self._numbers.values
        part = cast("QuantizableTunable", self._part)
        return part.quantize(bits, values(maps), values.exponents, n_jobs)

    def whole_layers(self) -> tuple[list[Layer], np.ndarray]:
        """Return the layers that compute the features, and where in the last one each is."""
        assert self._numbers is not None
        family, numbers = self._family, self._numbers
        rows, cols, _ = family.map_shape_
        layer = CellLayer(
            family.raster_shape,
            numbers.weights.whole(self._templates * self._size),
            numbers.bits,
            numbers.whole_biases(self._biases),
            numbers.shifts,
            (family.padding, family.padding),
            np.repeat(np.arange(rows), family.pool),
            np.repeat(np.arange(cols), family.pool),
        )
        layers, places = cast("QuantizableTunable", self._part).whole_layers()
        return [layer, *layers], places

    def family(self) -> LearnedMaps:
        """Return the family with the current parameters."""
        family = self._family
        return family.of(self._part.family(), family.templates_, family.biases_)
