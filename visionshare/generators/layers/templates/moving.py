"""Templates and biases that gradients move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from visionshare.generators.inputs import as_lines
from visionshare.generators.layers.integers.numbers import Bits, WholeNumbers
from visionshare.generators.layers.layer import AT_ONCE, pixel_unit
from visionshare.generators.layers.moving import Gradients, Moving
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.machine.resources import run_blocks, single_threaded_blas

if TYPE_CHECKING:
    from visionshare.generators.layers.templates.layer import TemplateLayer


class GradientSums(NamedTuple):
    """Where the gradients of a block of images are added; no inputs where none are asked for."""

    templates: np.ndarray
    biases: np.ndarray
    inputs: np.ndarray


class MovingTemplates(Moving):
    """Templates, in units of their root mean square at the start, and biases."""

    _fitted: TemplateLayer

    def __init__(self, layer: TemplateLayer) -> None:
        super().__init__(layer)
        size = np.sqrt(np.mean(np.square(layer.templates), axis=(1, 2, 3), keepdims=True))
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self.parameters = [layer.templates / self._size, layer.biases.copy()]
        self.templates = (0,)
        self._numbers: WholeNumbers | None = None
        rows, columns, n = layer.out_shape
        # Which template each maximum is of, and the maxima of a template one after the other.
        self._owners = np.tile(np.arange(n), rows * columns)
        self._order = np.argsort(self._owners, kind="stable")

    @property
    def _plain_templates(self) -> np.ndarray:
        return np.asarray(self.parameters[0] * self._size)

    def moved(self) -> None:
        templates = self._plain_templates
        biases = self.parameters[1].copy()
        if self._numbers is not None:
            templates = self._numbers.weights(templates)
            biases = self._numbers.biases(biases)
        self._fitted = self._fitted.with_templates(templates, biases)
        self._forward.renew([self._fitted])

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, Any]:
        """Return the maxima, and where each is in the padded image; −1 where it is 0."""
        values, places = self._forward.with_places(inputs, n_jobs)
        if self._numbers is not None:
            rounding = self._numbers.values
            # What is cut off has no gradient.
            places[~rounding.inside(values)] = -1
            values = rounding(values)
        return values, places

    def backward(
        self, inputs: np.ndarray, seen: Any, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients in templates and biases, and in the inputs."""
        rows, columns, n_templates = self._fitted.out_shape
        places = seen.reshape(len(inputs), rows * columns, n_templates)
        slopes = np.ascontiguousarray(G, np.float32).reshape(places.shape)
        blocks = -(-len(inputs) // AT_ONCE)
        q, _, channels = self._fitted.templates.shape[1:]
        of_templates = np.zeros((blocks, n_templates, q, q * channels), np.float32)
        of_biases = np.zeros((blocks, n_templates), np.float32)
        of_inputs = np.zeros(inputs.shape if below else (0, 0, 0, 0), np.float32)

        def block(start: int, stop: int) -> None:
            part = slice(start, stop)
            number = start // AT_ONCE
            sums = GradientSums(of_templates[number], of_biases[number], of_inputs[part])
            self._add_gradients(inputs[part], places[part], slopes[part], sums)

        # Blocks run on threads of their own; products on several would have other bits.
        with single_threaded_blas():
            run_blocks(block, len(inputs), AT_ONCE, n_jobs)
        total = of_templates.sum(axis=0).reshape(self._fitted.templates.shape) * self._size
        return [total, of_biases.sum(axis=0)], of_inputs if below else None

    def _add_gradients(
        self, inputs: np.ndarray, places: np.ndarray, slopes: np.ndarray, sums: GradientSums
    ) -> None:
        """Add the gradients of a block of images."""
        from visionshare.generators.layers.templates.kernels import (
            image_gradients,
            template_gradients,
        )

        ints = self._fitted.templates_code.ints
        images = as_lines(inputs)
        unit = pixel_unit(inputs)
        n, n_cells, n_templates = places.shape
        places = places.reshape(n, -1)
        slopes = slopes.reshape(n, -1)
        template_gradients(
            images,
            unit,
            ints,
            self._order,
            np.arange(n_templates + 1) * n_cells,
            places,
            slopes,
            sums.templates,
            sums.biases,
        )
        if len(sums.inputs):
            templates = as_lines(self._fitted.templates)
            image_gradients(templates, ints, self._owners, places, slopes, as_lines(sums.inputs))

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Round templates, biases and maxima from now on; return the exponents of the maxima."""
        numbers = self._rounded_parameters(bits, exponents)
        self._numbers = numbers
        self.moved()
        self._numbers = None
        values, _ = self.forward(inputs, n_jobs)
        self._numbers = numbers.measured(values)
        return self._numbers.values.exponents

    def _rounded_parameters(self, bits: Bits, exponents: np.ndarray) -> WholeNumbers:
        return WholeNumbers.of(self._plain_templates, exponents, bits.templates)

    def integers(self) -> IntegerTemplates:
        return IntegerTemplates(**self._whole_values())

    def _whole_values(self) -> dict[str, Any]:
        assert self._numbers is not None
        return {
            "in_shape": self._fitted.in_shape,
            "weights": self._numbers.weights.whole(self._plain_templates),
            "bits": self._numbers.bits,
            "biases": self._numbers.whole_biases(self.parameters[1]),
            "shifts": self._numbers.shifts,
            "pads": self._fitted.pads,
            "row_cells": self._fitted.row_cells,
            "col_cells": self._fitted.col_cells,
        }


moving = MovingTemplates
