"""Residual sums whose templates and biases gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.layers.integers.numbers import Bits, WholeNumbers
from visionshare.generators.layers.moving import Gradients
from visionshare.generators.layers.residual.integers import LARGEST_LIFT, IntegerResidual
from visionshare.generators.layers.templates.moving import MovingTemplates

if TYPE_CHECKING:
    from visionshare.generators.layers.residual.layer import ResidualLayer


class MovingResidual(MovingTemplates):
    """Templates, in units of their root mean square, and biases; their input is added."""

    _fitted: ResidualLayer

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the sums, where responses are above 0, and which sums are not cut off."""
        values, places = self._forward.with_places(inputs, n_jobs)
        if self._numbers is None:
            return values, (places, None)
        inside = self._numbers.values.inside(values)
        return self._numbers.values(values), (places, inside)

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        places, inside = seen
        slopes = np.asarray(G if inside is None else G * inside, np.float32)
        own, of_inputs = super().backward(inputs, places, slopes, n_jobs, below)
        if of_inputs is not None:
            flat = of_inputs.reshape(len(inputs), -1)
            flat[:, self._fitted.middles] += slopes.reshape(len(inputs), -1)
        return own, of_inputs

    def _rounded_parameters(self, bits: Bits, exponents: np.ndarray) -> WholeNumbers:
        numbers = super()._rounded_parameters(bits, exponents)
        # What is added is a whole number of the sums' units, and not of too many.
        every = np.resize(exponents, self._fitted.in_shape[2])
        added = every[self._fitted.sources]
        sums = np.clip(numbers.sums, added - LARGEST_LIFT, added)
        self._lifts = added - sums
        return numbers.with_sums(sums, every)

    def integers(self) -> IntegerResidual:
        sources = self._fitted.sources
        return IntegerResidual(**self._whole_values(), sources=sources, lifts=self._lifts)


moving = MovingResidual
