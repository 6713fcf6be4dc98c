"""Depthwise templates and biases that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from visionshare.generators.layers.depthwise.integers import IntegerDepthwise
from visionshare.generators.layers.integers.numbers import Bits, WholeNumbers
from visionshare.generators.layers.layer import pixel_unit
from visionshare.generators.layers.templates.moving import GradientSums, MovingTemplates

if TYPE_CHECKING:
    from visionshare.generators.layers.depthwise.layer import DepthwiseLayer


class MovingDepthwise(MovingTemplates):
    """Templates of one channel each, in units of their root mean square, and biases."""

    _fitted: DepthwiseLayer

    def _add_gradients(
        self, inputs: np.ndarray, places: np.ndarray, slopes: np.ndarray, sums: GradientSums
    ) -> None:
        from visionshare.generators.layers.depthwise.kernels import depthwise_backward

        taps = np.ascontiguousarray(self._fitted.templates[..., 0])
        images = np.ascontiguousarray(inputs)
        ints = self._fitted.code.ints
        unit = pixel_unit(inputs)
        depthwise_backward(images, unit, ints, taps, places, slopes, *sums)

    def _rounded_parameters(self, bits: Bits, exponents: np.ndarray) -> WholeNumbers:
        of_sources = np.resize(exponents, self._fitted.in_shape[2])[self._fitted.sources]
        of_sources = of_sources.reshape(-1, 1, 1, 1)
        return WholeNumbers.of(self._plain_templates, of_sources, bits.templates)

    def integers(self) -> IntegerDepthwise:
        return IntegerDepthwise(**self._whole_values(), sources=self._fitted.sources)


moving = MovingDepthwise
