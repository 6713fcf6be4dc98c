"""Units whose directions and offsets gradients move, of features that move too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from visionshare.generators.quantized.layers import Layer, UnitLayer
from visionshare.generators.quantized.numbers import Bits, WholeNumbers

if TYPE_CHECKING:
    from visionshare.generators.tuning import QuantizableTunable, TunableOnMaps
    from visionshare.generators.units.family import Units

__all__ = ["TunableUnits", "tunable"]


def tunable(family: Units) -> TunableUnits:
    """Return the units of a fitted family as a function of parameters that gradients move."""
    return TunableUnits(family)


class TunableUnits:
    """Units of features: directions, offsets, and what the family inside has.

    Parameters
    ----------
    family : Units
        Of a family that is tunable itself.

    Attributes
    ----------
    parameters : list of ndarray, float32
        Directions (n, p) whose columns have a mean square of 2/p at the start, offsets (n,), and
        those of the family inside.
    """

    def __init__(self, family: Units) -> None:
        self._part, self._like = family.part_.tunable(), family.take(np.arange(family.n_features_))
        p = max(1, family.directions_.shape[1])
        size = np.sqrt(np.mean(np.square(family.directions_), axis=0) * p / 2)
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self._directions = family.directions_ / self._size
        self._offsets = family.offsets_.copy()
        self._numbers: WholeNumbers | None = None
        self.parameters = [self._directions, self._offsets, *self._part.parameters]
        self.templates = tuple(2 + position for position in self._part.templates)

    def forward(self, images: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, Any]:
        """Return units (n, n_features), float32, and what :meth:`backward` needs."""
        inputs, seen = self._part.forward(images, n_jobs)
        if self._numbers is not None:
            return self._whole(self._numbers, inputs, seen)
        inputs = inputs * self._size
        sums = inputs @ self._directions.T + self._offsets
        return self._like.activated(sums), (inputs, sums, seen, None)

    def _whole(
        self, numbers: WholeNumbers, inputs: np.ndarray, seen: Any
    ) -> tuple[np.ndarray, Any]:
        """Return rounded units, and what :meth:`backward` needs."""
        directions = numbers.weights(self._directions * self._size)
        sums = inputs @ directions.T + numbers.biases(self._offsets)
        if numbers.roots is not None:
            inside = numbers.roots.inside(np.abs(sums))
            sums = numbers.roots(sums)
        values = self._like.activated(sums)
        if numbers.roots is None:
            inside = numbers.values.inside(values)
        return numbers.values(values), (inputs * self._size, sums, seen, inside)

    def backward(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> list[np.ndarray]:
        """Return the gradients in the parameters of Σ_ij G_ij u_ij."""
        inputs, sums, inner, inside = seen
        D = self._slopes(sums, G, inside)
        of_part = self._part.backward(
            images, inputs / self._size, inner, self._in_inputs(D), n_jobs
        )
        return [D.T @ inputs, D.sum(axis=0), *of_part]

    def image_gradients(
        self, images: np.ndarray, values: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Return the gradients in the images' values of Σ_ij G_ij u_ij, float32."""
        inputs, sums, inner, inside = seen
        G = self._in_inputs(self._slopes(sums, G, inside))
        part = cast("TunableOnMaps", self._part)
        return part.image_gradients(images, inputs / self._size, inner, G, n_jobs)

    def _slopes(self, sums: np.ndarray, G: np.ndarray, inside: np.ndarray | None) -> np.ndarray:
        """Return the gradients in the sums; what is cut off has none."""
        slope = sums > 0 if self._like.activation == "relu" else 2 * sums
        gradients = np.asarray(G * slope, np.float32)
        return gradients if inside is None else gradients * inside

    def _in_inputs(self, D: np.ndarray) -> np.ndarray:
        directions = self._directions * self._size
        if self._numbers is not None:
            directions = self._numbers.weights(directions)
        return np.asarray(D @ directions, np.float32)

    def quantize(
        self, bits: Bits, images: np.ndarray, exponents: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """Round directions, offsets and units from now on; return the exponents of the units."""
        part = cast("QuantizableTunable", self._part)
        of_inputs = part.quantize(bits, images, exponents, n_jobs)
        inputs, _ = part.forward(images, n_jobs)
        directions = self._directions * self._size
        numbers = WholeNumbers.of(directions, of_inputs, bits.weights)
        sums = inputs @ numbers.weights(directions).T + numbers.biases(self._offsets)
        square = self._like.activation == "square"
        self._numbers = (
            numbers.measured_roots(sums) if square else numbers.measured(np.maximum(sums, 0))
        )
        return self._numbers.values.exponents

    def whole_layers(self) -> tuple[list[Layer], np.ndarray]:
        """Return the layers that compute the units, and where in the last one each is.

        Raises
        ------
        InputError
            If numbers of two bits, none of which is 0, stand for features that are not there.
        """
        assert self._numbers is not None
        numbers = self._numbers
        layers, places = cast("QuantizableTunable", self._part).whole_layers()
        shape = layers[-1].out_shape
        whole = numbers.weights.whole(self._directions * self._size)
        weights = np.zeros((len(whole), int(np.prod(shape))), np.int64)
        weights[:, places] = whole
        units = UnitLayer(
            shape, weights, numbers.bits, numbers.whole_biases(self._offsets), numbers.shifts,
            numbers.roots is not None,
        )  # fmt: skip
        return [*layers, units], np.arange(len(whole))

    def moved(self) -> None:
        """Take on the current parameters."""
        self._part.moved()

    def family(self) -> Units:
        """Return the family with the current parameters."""
        directions = self._directions * self._size
        units = self._like.take(np.arange(self._like.n_features_))
        return units.of(self._part.family(), directions, self._offsets.copy())
