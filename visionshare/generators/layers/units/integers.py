"""A layer of units in integers of few bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.layers.integer_layer import WeightedIntegerLayer, weighted_values
from visionshare.generators.layers.layer import LayerCode, Selection, Shape
from visionshare.generators.layers.units.layer import UnitLayer
from visionshare.generators.states import Arrays, State


@dataclass(frozen=True, eq=False)
class IntegerUnits(WeightedIntegerLayer):
    """Weighted sums of all inputs, rectified or squared, shifted, cut off at 255."""

    in_shape: Shape
    weights: np.ndarray
    bits: int | str
    biases: np.ndarray
    shifts: np.ndarray
    square: bool = False
    kind = "units-int"

    @property
    def in_vectors(self) -> bool:  # type: ignore[override]
        """Whether programs in vectors of bytes compute it."""
        return not self.square

    def __post_init__(self) -> None:
        self._check_sums()
        n_inputs = int(np.prod(self.in_shape))
        if self.weights.shape != (len(self.weights), n_inputs):
            raise InputError("weights", self.weights.shape, f"(n, {n_inputs})")

    @property
    def out_shape(self) -> Shape:
        """One row and column of as many channels as there are units."""
        return 1, 1, len(self.weights)

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image; a square is one more."""
        n = len(self.weights) if outputs is None else len(np.unique(outputs))
        return n * (self.weights.shape[1] + self.square)

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the layer with the units in use, and where the outputs are then."""
        used, number = np.unique(outputs, return_inverse=True)
        kept = replace(
            self, weights=self.weights[used], biases=self.biases[used], shifts=self.shifts[used]
        )
        return Selection(kept, number.reshape(-1))

    @cached_property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        n, n_inputs = self.weights.shape
        ints = np.concatenate([[n_inputs, n, self.square], self.shifts]).astype(np.int64)
        weights = np.concatenate([self.biases, self.weights.T.ravel()]).astype(np.int32)
        return LayerCode(ints, weights.view(np.float32), n)

    @property
    def steps(self) -> list[tuple[Any, LayerCode]]:
        if not self._exact_in_floats:
            return super().steps
        directions = self.weights.astype(np.float32)
        activation = "none" if self.square else "relu"
        sums = UnitLayer(self.in_shape, directions, self.biases.astype(np.float32), activation)
        return [*sums.steps, self._rounding(bool(self.square))]

    def to_state(self) -> dict[str, Any]:
        """Return bits, shape and whether sums are squared."""
        return super().to_state() | {"square": bool(self.square)}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> IntegerUnits:
        square = state.get("square")
        if not isinstance(square, bool):
            raise InputError("square", square, "true or false")
        return cls(in_shape, square=square, **weighted_values(state, arrays))
