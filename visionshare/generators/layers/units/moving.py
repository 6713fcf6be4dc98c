"""Directions and offsets of units that gradients move."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.layers.integers.numbers import Bits, WholeNumbers
from visionshare.generators.layers.layer import pixel_unit
from visionshare.generators.layers.moving import Gradients, Moving
from visionshare.generators.layers.units.integers import IntegerUnits

if TYPE_CHECKING:
    from visionshare.generators.layers.units.layer import UnitLayer


class MovingUnits(Moving):
    """Directions (n, p) whose columns have a mean square of 2/p at the start, and offsets."""

    _fitted: UnitLayer

    def __init__(self, layer: UnitLayer) -> None:
        super().__init__(layer)
        p = max(1, layer.directions.shape[1])
        size = np.sqrt(np.mean(np.square(layer.directions), axis=0) * p / 2)
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self.parameters = [layer.directions / self._size, layer.offsets.copy()]
        self._numbers: WholeNumbers | None = None

    def layer(self) -> UnitLayer:
        directions = self._directions
        offsets = self.parameters[1].copy()
        return replace(self._fitted, directions=directions, offsets=offsets)

    @property
    def _directions(self) -> np.ndarray:
        return np.asarray(self.parameters[0] * self._size)

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the units (n, 1, 1, n_units), the scaled inputs, the sums and what is inside."""
        flat = inputs.reshape(len(inputs), -1) * pixel_unit(inputs)
        scaled = flat * self._size
        numbers = self._numbers
        inside = None
        if numbers is None:
            sums = scaled @ self.parameters[0].T + self.parameters[1]
            values = self._activated(sums)
        else:
            directions = numbers.weights(self._directions)
            sums = flat @ directions.T + numbers.biases(self.parameters[1])
            if numbers.roots is not None:
                inside = numbers.roots.inside(np.abs(sums))
                sums = numbers.roots(sums)
            values = self._activated(sums)
            if numbers.roots is None:
                inside = numbers.values.inside(values)
            values = numbers.values(values)
        return values.reshape(len(inputs), *self._fitted.out_shape), (scaled, sums, inside)

    def _activated(self, sums: np.ndarray) -> np.ndarray:
        if self._fitted.activation == "square":
            return np.square(sums)
        return np.maximum(sums, 0) if self._fitted.activation == "relu" else sums

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients in directions and offsets, and in the inputs."""
        scaled, sums, inside = seen
        slopes = {"relu": sums > 0, "square": 2 * sums}.get(self._fitted.activation, 1)
        D = np.asarray(G.reshape(sums.shape) * slopes, np.float32)
        if inside is not None:
            # What is cut off has no gradient.
            D = D * inside
        own = [D.T @ scaled, D.sum(axis=0)]
        if not below:
            return own, None
        directions = self._directions
        if self._numbers is not None:
            directions = self._numbers.weights(directions)
        return own, np.asarray(D @ directions, np.float32).reshape(inputs.shape)

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Round directions, offsets and units from now on; return the exponents of the units."""
        of_inputs = np.resize(exponents, self._directions.shape[1])
        numbers = WholeNumbers.of(self._directions, of_inputs, bits.weights)
        flat = inputs.reshape(len(inputs), -1)
        sums = flat @ numbers.weights(self._directions).T + numbers.biases(self.parameters[1])
        square = self._fitted.activation == "square"
        self._numbers = (
            numbers.measured_roots(sums) if square else numbers.measured(np.maximum(sums, 0))
        )
        return self._numbers.values.exponents

    def integers(self) -> IntegerUnits:
        assert self._numbers is not None
        numbers = self._numbers
        return IntegerUnits(
            self._fitted.in_shape,
            numbers.weights.whole(self._directions),
            numbers.bits,
            numbers.whole_biases(self.parameters[1]),
            numbers.shifts,
            numbers.roots is not None,
        )


moving = MovingUnits
