"""Templates and biases that gradients move."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from visionshare.generators.inputs import as_lines
from visionshare.generators.layers.chain import Chain, chain_of, forward_block
from visionshare.generators.layers.integers.numbers import Bits, WholeNumbers
from visionshare.generators.layers.templates.integers import IntegerTemplates
from visionshare.machine.resources import run_blocks, single_threaded_blas

if TYPE_CHECKING:
    from visionshare.generators.layers.moving import Gradients
    from visionshare.generators.layers.templates.layer import TemplateLayer

__all__ = ["MovingTemplates"]

# Images whose gradients are summed together, in the same order on any number of threads.
_AT_ONCE = 64


class MovingTemplates:
    """Templates, in units of their root mean square at the start, and biases."""

    def __init__(self, layer: TemplateLayer) -> None:
        size = np.sqrt(np.mean(np.square(layer.templates), axis=(1, 2, 3), keepdims=True))
        self._size = np.where(size > 0, size, 1).astype(np.float32)
        self.parameters = [layer.templates / self._size, layer.biases.copy()]
        self.templates: tuple[int, ...] = (0,)
        self._numbers: WholeNumbers | None = None
        self._layer = layer
        self._chain = chain_of([layer])

    def layer(self) -> TemplateLayer:
        """Return the layer with the current parameters."""
        return self._layer

    @property
    def _plain_templates(self) -> np.ndarray:
        return np.asarray(self.parameters[0] * self._size)

    def moved(self) -> None:
        """Take on the current parameters."""
        templates, biases = self._plain_templates, self.parameters[1].copy()
        if self._numbers is not None:
            templates = self._numbers.weights(templates)
            biases = self._numbers.biases(biases)
        before = self._layer
        self._layer = replace(before, templates=templates, biases=biases)
        # Cells stay as they are: only the taps are packed again.
        self._chain = self._chain._replace(floats=self._layer.code_with(before.code).floats)

    def forward(self, inputs: np.ndarray, n_jobs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the maxima, and where each is in the padded image; −1 where it is 0."""
        shape = (len(inputs), *self._layer.out_shape)
        flat_values = np.empty((len(inputs), int(np.prod(shape[1:]))), np.float32)
        flat_places = np.empty(flat_values.shape, np.int32)
        flat = np.ascontiguousarray(inputs).reshape(len(inputs), -1)
        _forward(self._chain, flat, flat_values, flat_places, n_jobs)
        values, places = flat_values.reshape(shape), flat_places.reshape(shape)
        if self._numbers is not None:
            rounding = self._numbers.values
            # What is cut off has no gradient.
            places[~rounding.inside(values)] = -1
            values = rounding(values)
        return values, places

    def backward(
        self, inputs: np.ndarray, seen: np.ndarray, G: np.ndarray, n_jobs: int, below: bool
    ) -> Gradients:
        """Return the gradients in templates and biases, and in the inputs."""
        from visionshare.generators.layers.templates.kernels import template_gradients

        layer = self._layer
        n, (rows, columns, n_templates) = len(inputs), layer.out_shape
        places = seen.reshape(n, rows * columns, n_templates)
        gradients = np.ascontiguousarray(G, np.float32).reshape(places.shape)
        lines, ints = as_lines(inputs), layer.code.ints
        unit = np.float32(1 / 255 if inputs.dtype == np.uint8 else 1)
        blocks, q = -(-n // _AT_ONCE), layer.templates.shape[1]
        of_templates = np.zeros((blocks, n_templates, q, q * layer.in_shape[2]), np.float32)
        of_biases = np.zeros((blocks, n_templates), np.float32)

        def block(start: int, stop: int) -> None:
            number = start // _AT_ONCE
            template_gradients(
                lines[start:stop], unit, ints, places[start:stop], gradients[start:stop],
                of_templates[number], of_biases[number],
            )  # fmt: skip

        run_blocks(block, n, _AT_ONCE, n_jobs)
        total = of_templates.sum(axis=0).reshape(layer.templates.shape) * self._size
        own = [total, of_biases.sum(axis=0)]
        return own, self._in_inputs(places, gradients, n_jobs) if below else None

    def _in_inputs(self, places: np.ndarray, gradients: np.ndarray, n_jobs: int) -> np.ndarray:
        """Return the gradients in the inputs' values, (n, *in_shape), float32."""
        from visionshare.generators.layers.templates.kernels import image_gradients

        layer = self._layer
        out = np.empty((len(places), *layer.in_shape), np.float32)
        lines, templates, ints = as_lines(out), as_lines(layer.templates), layer.code.ints

        def block(start: int, stop: int) -> None:
            image_gradients(
                templates, ints, places[start:stop], gradients[start:stop], lines[start:stop]
            )

        # Blocks run on threads of their own; a product on several would have other bits.
        with single_threaded_blas():
            run_blocks(block, len(out), _AT_ONCE, n_jobs)
        return out

    def quantize(
        self, bits: Bits, inputs: np.ndarray, exponents: np.ndarray, n_jobs: int
    ) -> np.ndarray:
        """Round templates, biases and maxima from now on; return the exponents of the maxima."""
        numbers = WholeNumbers.of(self._plain_templates, exponents, bits.templates)
        self._numbers = numbers
        self.moved()
        self._numbers = None
        values, _ = self.forward(inputs, n_jobs)
        self._numbers = numbers.measured(values)
        return self._numbers.values.exponents

    def integers(self) -> IntegerTemplates:
        """Return the layer of integers that the rounded parameters are."""
        assert self._numbers is not None
        numbers, layer = self._numbers, self._layer
        return IntegerTemplates(
            layer.in_shape,
            numbers.weights.whole(self._plain_templates),
            numbers.bits,
            numbers.whole_biases(self.parameters[1]),
            numbers.shifts,
            layer.pads,
            layer.row_cells,
            layer.col_cells,
        )


def _forward(
    chain: Chain, images: np.ndarray, out: np.ndarray, places: np.ndarray, n_jobs: int
) -> None:
    unit = np.float32(1 / 255 if images.dtype == np.uint8 else 1)

    def block(start: int, stop: int) -> Any:
        forward_block(
            images[start:stop], unit, chain.steps, chain.ints, chain.floats, chain.work,
            out[start:stop], places[start:stop],
        )  # fmt: skip

    run_blocks(block, len(images), _AT_ONCE, n_jobs)
