"""Means that gradients pass; nothing of them moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.layers.integers.numbers import Bits, WholeNumbers
from visionshare.generators.layers.means.integers import WEIGHT_BITS, IntegerMeans
from visionshare.generators.layers.moving import Gradients, Moving

if TYPE_CHECKING:
    from visionshare.generators.layers.means.layer import MeanLayer

# Four times a weight is then a byte, with which TensorFlow Lite rounds as all others do.
_LARGEST = 31


class MovingMeans(Moving):
    """Sums over the plane, weighted with one over the positions."""

    _fitted: MeanLayer

    def __init__(self, layer: MeanLayer) -> None:
        super().__init__(layer)
        n = len(layer.sources)
        self._plain = np.full((n, 1, 1, 1), 1 / layer.n_positions, np.float32)
        self._numbers: WholeNumbers | None = None

    @property
    def _weights(self) -> np.ndarray:
        rounding = self._numbers
        return (self._plain if rounding is None else rounding.weights(self._plain)).ravel()

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the means, and which of them are not cut off."""
        if self._numbers is None:
            return super().forward(inputs, n_jobs)
        values = self._sums(inputs)
        return self._numbers.values(values), self._numbers.values.inside(values)

    def _sums(self, inputs: np.ndarray) -> np.ndarray:
        """Return the weighted sums of whole multiples of powers of two, exactly."""
        sums = inputs[..., self._fitted.sources].sum(axis=(1, 2), keepdims=True, dtype=np.float64)
        return np.asarray(sums * self._weights)

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return no gradients of parameters, and those in the inputs."""
        if not below:
            return [], None
        slopes = G.reshape(len(inputs), 1, 1, -1) * self._weights
        of_inputs = np.zeros(inputs.shape, np.float32)
        of_inputs[..., self._fitted.sources] = slopes if seen is None else slopes * seen
        return [], of_inputs

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Round weights and means from now on; return the exponents of the means."""
        of_sources = np.resize(exponents, self._fitted.in_shape[2])[self._fitted.sources]
        of_weights = of_sources.reshape(-1, 1, 1, 1)
        numbers = WholeNumbers.of(self._plain, of_weights, WEIGHT_BITS)
        exponent = np.ceil(np.log2(self._plain[0, 0, 0, 0] / _LARGEST)).astype(np.int64)
        self._numbers = numbers.with_sums(of_sources + exponent, of_weights)
        self._numbers = self._numbers.measured(self._sums(inputs))
        return self._numbers.values.exponents

    def integers(self) -> IntegerMeans:
        assert self._numbers is not None
        rows, columns, _ = self._fitted.in_shape
        return IntegerMeans(
            in_shape=self._fitted.in_shape,
            weights=self._numbers.weights.whole(self._plain),
            bits=WEIGHT_BITS,
            biases=np.zeros(len(self._plain), np.int64),
            shifts=self._numbers.shifts,
            pads=(0, 0),
            row_cells=np.zeros(rows, np.int64),
            col_cells=np.zeros(columns, np.int64),
            sources=self._fitted.sources,
        )


moving = MovingMeans
