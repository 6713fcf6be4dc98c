"""A layer of units: weighted sums of all values, each rectified or squared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from visionshare.errors import InputError
from visionshare.generators.checks import check_choice, check_memory, check_whole
from visionshare.generators.layers.layer import Fitted, Layer, LayerCode, Selection, Shape
from visionshare.generators.layers.states import float_array
from visionshare.generators.states import Arrays, State

#: Activations by name, with the numbers that kernels know them by.
ACTIVATIONS = {"relu": 0, "square": 1, "none": 2}
# Images that measure how inputs are scattered.
_MEASURED = 5000
_LANES = 16
# Of the largest deviation of an input.
_LEAST_DEVIATION = 0.02


@dataclass(frozen=True, eq=False)
class UnitLayer(Fitted):
    """Functions of weighted sums of all inputs: u_j = σ(Σ_i v_ji x_i + b_j)."""

    kind = "units"
    moves = True
    integer_rank = 2
    in_shape: Shape
    directions: np.ndarray
    offsets: np.ndarray
    activation: str = "relu"

    @property
    def out_shape(self) -> Shape:
        """One row and column of as many channels as there are units."""
        return 1, 1, len(self.directions)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Directions and offsets."""
        return {"directions": self.directions, "offsets": self.offsets}

    def macs(self, outputs: np.ndarray | None = None) -> int:
        """Return the multiply-accumulates per image; a square is one more."""
        n = len(self.directions) if outputs is None else len(outputs)
        return n * self.macs_of_one

    def added_macs(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray | None:
        """Return the multiply-accumulates of each unit: they share nothing."""
        return np.full(len(outputs), self.macs_of_one)

    @property
    def macs_of_one(self) -> int:
        """Multiply-accumulates of one unit."""
        return self.directions.shape[1] + (self.activation == "square")

    @cached_property
    def code(self) -> LayerCode:
        """The layer as compiled functions read it."""
        n, n_inputs = self.directions.shape
        lanes = -(-n // _LANES) * _LANES
        table = np.zeros((n_inputs + 1, lanes), np.float32)
        table[0, :n] = self.offsets
        table[1:, :n] = self.directions.T
        ints = np.array([n_inputs, n, lanes, ACTIVATIONS[self.activation]], np.int64)
        return LayerCode(ints, table.ravel(), 0)

    def take(self, outputs: np.ndarray) -> Selection:
        """Return the chosen units, in this order."""
        kept = replace(self, directions=self.directions[outputs], offsets=self.offsets[outputs])
        return Selection(kept, np.arange(len(outputs)))

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Return the units (m, n) of rows of inputs (m, H · W · C)."""
        sums = X @ self.directions.T + self.offsets
        if self.activation == "square":
            return np.square(sums)
        return np.maximum(sums, 0) if self.activation == "relu" else sums

    def shares(self, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what weighted sums of units are of the inputs."""
        # Weights of inputs, and the rest. A unit is s · (Σ_i v_i x_i + b), where s is 1 or 0 of
        # max(0, ·), and the sum itself of a square: s is taken as it is for these inputs, so that
        # each x_i has its share of the unit.
        sums = self.directions.astype(np.float64) @ values.astype(np.float64) + self.offsets
        slopes = {"relu": (sums > 0).astype(np.float64), "square": sums}.get(self.activation)
        of_units = np.asarray(weights, np.float64) * (1.0 if slopes is None else slopes)
        return of_units @ self.directions, of_units @ self.offsets

    def describe(self, output: int) -> dict[str, Any]:
        """Return the unit's direction and offset."""
        return {
            "kind": "unit",
            "activation": self.activation,
            "direction": self.directions[output],
            "offset": float(self.offsets[output]),
        }

    def to_state(self) -> dict[str, Any]:
        """Return the activation."""
        return {"activation": self.activation}

    @classmethod
    def from_state(cls, state: State, arrays: Arrays, in_shape: Shape) -> UnitLayer:
        activation = state.get("activation")
        check_choice("activation", activation, ACTIVATIONS)
        directions = float_array(arrays, "directions", 2)
        n_inputs = int(np.prod(in_shape))
        if directions.shape[1] != n_inputs:
            raise InputError("directions", directions.shape, f"shape (n, {n_inputs})")
        offsets = float_array(arrays, "offsets", 1)
        if len(offsets) != len(directions):
            raise InputError("offsets", offsets.shape, f"shape ({len(directions)},)")
        return cls(in_shape, directions, offsets, str(activation))


class Units(Layer):
    """Units with random directions in the standardized inputs.

    Drawn units are a pool that a greedy search chooses from; fine-tuning moves them. Sums of
    squares are all quadratic forms, so that few units stand for all products of pairs of inputs.

    Parameters
    ----------
    n_units : int, default 48
    activation : {"relu", "square"}, default "relu"

    References
    ----------
    G.-B. Huang, Q.-Y. Zhu, C.-K. Siew, "Extreme learning machine: theory and applications",
    Neurocomputing 70, 2006: random units under linear weights.

    Examples
    --------
    >>> inputs = np.random.default_rng(0).random((9, 1, 1, 4), np.float32)
    >>> Units(3).fit(inputs, None, np.random.default_rng(0)).out_shape
    (1, 1, 3)
    """

    kind = "units"
    moves = True
    integer_rank = 2

    def __init__(self, n_units: int = 48, activation: str = "relu") -> None:
        self.n_units = n_units
        self.activation = activation

    def check_parameters(self) -> None:
        check_whole("n_units", self.n_units)
        check_choice("activation", self.activation, ("relu", "square"))

    def fit(self, inputs: Any, y: np.ndarray | None, rng: np.random.Generator) -> UnitLayer:
        """Return units whose sums of these inputs have mean 0 and standard deviation 1 or so."""
        shape = (int(inputs.shape[1]), int(inputs.shape[2]), int(inputs.shape[3]))
        check_memory("n_units", self.n_units, 8.0 * self.n_units * float(np.prod(shape)))
        measured = np.asarray(inputs[:: max(1, len(inputs) // _MEASURED)])
        unit = np.float32(1 / 255 if measured.dtype == np.uint8 else 1)
        X = measured.reshape(len(measured), -1) * unit
        return drawn_units(X, shape, self.n_units, self.activation, rng)


def drawn_units(
    X: np.ndarray, in_shape: Shape, n: int, activation: str, rng: np.random.Generator
) -> UnitLayer:
    """Return units of directions that are drawn for the standardized columns of X (m, p)."""
    deviation = X.std(axis=0, dtype=np.float64)
    # An input that hardly varies must not weigh most.
    least = _LEAST_DEVIATION * float(deviation.max(initial=0))
    scale = np.where(deviation > 0, 1 / np.maximum(deviation, max(least, 1e-30)), 0)
    directions = rng.standard_normal((n, X.shape[1])) * scale * np.sqrt(2 / max(1, X.shape[1]))
    offsets = -directions @ X.mean(axis=0, dtype=np.float64)
    return UnitLayer(
        in_shape, directions.astype(np.float32), offsets.astype(np.float32), activation
    )
